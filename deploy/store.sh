#!/bin/bash
# The S3 store in one container: a monitor, a storage daemon and a gateway of Ceph.  What they keep is in /var/lib/ceph/store.
#
# The first start makes it, with one user, whose keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.  The order of the
# steps matters.  Only the gateway listens beyond this container.  If one of the three ends, so does the container.
set -euo pipefail
data=/var/lib/ceph/store
export CEPH_ARGS="--conf $data/ceph.conf"
address='[v2:127.0.0.1:3300]'

make_store() {
    rm -rf "${data:?}"/*
    mkdir -p "$data"/{mon,osd,rgw}
    local fsid osd_id
    fsid=$(</proc/sys/kernel/random/uuid)
    osd_id=$(</proc/sys/kernel/random/uuid)
    cat >"$data/ceph.conf" <<CONF
[global]
fsid = $fsid
mon host = $address
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = $data/keyring
run dir = $data
mon data = $data/mon
osd data = $data/osd
rgw data = $data/rgw
log file = /dev/null
mon cluster log file = /dev/null
mon allow pool size one = true
mon data avail crit = 1
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd memory target = 1073741824
bluestore block size = 107374182400
rgw frontends = beast port=8000 tcp_nodelay=1
CONF
    ceph-authtool --create-keyring "$data/keyring" --gen-key -n mon. --cap mon 'allow *'
    ceph-authtool "$data/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
    monmaptool --create --fsid "$fsid" --addv a "$address" "$data/monmap"
    ceph-mon --mkfs -i a --monmap "$data/monmap" --keyring "$data/keyring"
    ceph-mon -f -i a &
    ceph osd new "$osd_id"
    ceph-authtool --create-keyring "$data/osd/keyring" --gen-key -n osd.0
    ceph auth add osd.0 mon 'allow profile osd' osd 'allow *' -i "$data/osd/keyring"
    ceph-osd -i 0 --keyring "$data/osd/keyring" --mkfs --osd-uuid "$osd_id"
    ceph-osd -f -i 0 --keyring "$data/osd/keyring" &
    radosgw-admin user create --uid lake --display-name lake \
        --access-key "$AWS_ACCESS_KEY_ID" --secret-key "$AWS_SECRET_ACCESS_KEY" >/dev/null
    touch "$data/made"
}

if [ -e "$data/made" ]; then
    ceph-mon -f -i a &
    ceph-osd -f -i 0 --keyring "$data/osd/keyring" &
else
    make_store
fi
radosgw -f -n client.admin &
wait -n
