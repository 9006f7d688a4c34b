"""Imports what commands import when they run, once, before they are forked."""

import importlib
import pkgutil

import aiobotocore.session
import pyarrow.dataset
import pyarrow.parquet
import s3fs

import log_lake.cli
import log_lake.system_tables
from log_lake import Lake

for module in pkgutil.iter_modules(log_lake.cli.__path__):
    importlib.import_module(f"log_lake.cli.{module.name}")

__all__ = ["Lake", "aiobotocore", "log_lake", "pyarrow", "s3fs"]
