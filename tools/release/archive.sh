#!/bin/sh
# archive.sh FOLDER NAME…: prints a .tar.gz of the content of FOLDER, without a trace of its time and its maker; needs SOURCE_DATE_EPOCH.
set -eu
folder=$1; shift
tar --create --directory "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --format=gnu "$@" | gzip -9n
