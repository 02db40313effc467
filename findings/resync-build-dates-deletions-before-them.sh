#!/bin/sh
# resync-build gives a deletion the time of the deleted file's last change, which is older than the list that still had it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet resync==2.0.1
mkdir www
echo stays >www/stays.txt
echo goes >www/goes.txt
touch -d 2020-01-02T00:00:00Z www/stays.txt www/goes.txt
env/bin/resync-build --write-resourcelist --outfile list.xml https://site.invalid/=www
rm www/goes.txt
env/bin/resync-build --write-changelist --reference list.xml --outfile changes.xml https://site.invalid/=www >said
entry=$(grep goes.txt changes.xml)
echo "resync 2.0.1: the list of $(grep -o ' at="[^"]*' list.xml | cut -c 6-24) has it; then $entry"
echo "$entry" | grep 'change="deleted"' | grep -q '<lastmod>2020-01-02T00:00:00Z'
! grep -q 'datetime=' changes.xml
