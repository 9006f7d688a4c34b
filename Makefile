# Everything is run from here.  The first target that needs it makes .venv; nothing is installed elsewhere.
#
#   make demo  [DATA=files KEY=field]    the main job on a year of flights, or on your files
#   make test                            make check, the slow tests, and those on real Airflow and Spark
#   make up / make status / make down    Airflow and Spark Connect on this machine, left running
#   make airflow ARGS='dags list'        an airflow command in the Airflow that make up started
#   make test-s3                         the stores' contract on a real S3 server (installs Ceph if missing: root)
#   make test-containers                 docker-compose.yaml in containers, and the failure drills (installs podman if missing: root)
#   make check                           lint, types, layers, vocabulary and the fast tests
#   make coverage                        the share of each room's lines that the fast tests run
#   make bench [BENCH=name]              the benchmarks
#   make fuzz [COUNT=n]                  every kind of stored thing, changed n times (5,000) with right checksums
#   make sim [SEEDS=n] [FROM=m]          the journal under every fault
#   make sim-pairs [SEEDS=n] [FROM=m]    every two of those who work on a pool, under every fault
#   make sim-histories [SEEDS=n] [FROM=m]  transactions over several pools: is there an order that explains what was seen?
#   make models                          formal models of the protocol: Spin visits every state, and finds each broken rule
#   make mutants [N=n] [SEED=s]          one small change of the core at a time: do its tests see it?
#   make sim-compaction [ARGS=...]       months of loads against the planner; ARGS=--large: ten terabytes (ARGS=--help)
#   make wheel                           the wheel, the source distribution and the bill of materials (CycloneDX), in dist/
#   make audit                           known holes of the locked packages, where a service of them can be reached
#   make lock                            uv.lock and requirements.txt anew, after a change of pyproject.toml (ARGS=--upgrade: newest versions)
#   make env                             only the environment

PY := .venv/bin/python
TEST_SECONDS ?= 5400
export PYTHON

# One line: what runs and, at its end, the seconds it took.  Everything that it said only when it fails.
part = @printf '%-8s' '$(1)'; begun=$$(date +%s); said=$$($(2) 2>&1) || { status=$$?; \
  printf 'failed\n'; printf '%s\n' "$$said" >&2; exit $$status; }; printf '%4d s\n' $$(($$(date +%s) - begun))
# Spark needs a Java: the machine's, or one put into .venv.
with_java = JAVA_HOME=$$($(PY) -m local.java) || exit 1; export JAVA_HOME;

# uv.lock holds addresses of pypi.org and of no other registry (decision 56).
uv_export = .venv/bin/uv export --frozen --quiet --all-extras --no-emit-project --no-header --no-annotate
uv_lock = env -u UV_INDEX -u UV_EXTRA_INDEX_URL .venv/bin/uv lock --default-index https://pypi.org/simple

# A line for each folder of tests, at its end.
pytest = $(PY) -m pytest tests -q -p tests.support.parts -o console_output_style=classic

FAST = -m "not spark and not airflow and not slow"

.DEFAULT_GOAL := help
.PHONY: help env wheel audit lock demo test test-s3 test-containers up down status airflow check coverage lint bench fuzz sim sim-pairs sim-histories models mutants sim-compaction

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

env:
	@sh local/env.sh

wheel: env
	@$(PY) -m hatchling build
	@.venv/bin/uv export --frozen --quiet --no-dev --all-extras --preview-features sbom-export --format cyclonedx1.5 \
		--output-file dist/log_lake-$$($(PY) -m hatchling version).cdx.json >/dev/null

# pip-audit is run in an environment of its own, which uv makes: it brings 25 packages.
audit: env
	@$(PY) -m local.audit

# The environment may be older than pyproject.toml, which it could not be made for before this.
lock:
	@[ -x .venv/bin/uv ] || sh local/env.sh
	@$(uv_lock) $(ARGS)
	@$(uv_export) --output-file requirements.txt >/dev/null

demo: env
	@$(PY) -m local.demo $(if $(DATA),--data '$(DATA)') $(if $(KEY),--key '$(KEY)')

up down status: env
	@$(PY) -m local $@

airflow: env
	@$(PY) -m local airflow -- $(ARGS)

lint: env
	$(call part,style,{ $(PY) -m ruff check . && $(PY) -m ruff format --check .; })
	$(call part,types,$(PY) -m mypy)
	$(call part,layers,.venv/bin/lint-imports)
	$(call part,words,$(PY) -m local.vocabulary)
	$(call part,reading,$(PY) -m local.reading)
	$(call part,lock,{ $(uv_lock) --check --offline --no-cache && $(uv_export) | cmp - requirements.txt; })

check: lint
	@$(pytest) $(FAST)

# A test that fails does not hide the figures; the status is pytest's.
coverage: env
	@$(PY) -m coverage run -m pytest tests -q -p tests.support.parts -o console_output_style=classic $(FAST); \
		status=$$?; $(PY) -m tests.support.rooms_covered && exit $$status

test: lint
	@$(with_java) exec $(PY) -m tests.support.side_by_side --seconds $(TEST_SECONDS)

test-s3: env
	@LAKE_TEST_CEPH=1 $(PY) -m pytest tests/contract -q -rs -k ceph

test-containers: env
	@LAKE_TEST_CONTAINERS=1 $(PY) -m pytest tests/containers -q -s -x -p tests.support.parts

bench: env
	@$(with_java) $(PY) -m benchmarks $(BENCH)

fuzz: env
	@LAKE_TEST_MUTATIONS=$(or $(COUNT),5000) $(PY) -m pytest -q -s \
		tests/unit/rights/test_mutations.py tests/unit/publish/test_damaged_tables.py tests/properties/test_indexes.py

sim: env
	@$(PY) -m tests.simulation $(or $(SEEDS),1000) $(if $(FROM),--first $(FROM))

sim-pairs: env
	@$(PY) -m tests.simulation --pairs $(or $(SEEDS),1000) $(if $(FROM),--first $(FROM))

sim-histories: env
	@$(PY) -m tests.simulation --histories $(or $(SEEDS),500) $(if $(FROM),--first $(FROM))

models: env
	@$(PY) -m tests.models

mutants: env
	@$(PY) -m local.mutation $(or $(N),20) $(if $(SEED),--seed $(SEED)) $(ARGS)

sim-compaction: env
	@$(PY) -m tests.simulation.compaction $(ARGS)
