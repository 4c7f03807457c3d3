#!/bin/sh
# manual.sh FOLDER: writes the manual pages kquota.1 and kquota-agent.yml.5, which lowdown makes of the pages of reference.
# They have the date of SOURCE_DATE_EPOCH.
set -eu
cd "$(dirname "$0")/../.."
folder=$1
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/kquota/__init__.py)
date=$(date --utc --date "@$SOURCE_DATE_EPOCH" +%F)

# A link becomes its text, a row of a table an item, and a heading below the title one of the manual page.
reference() {
  sed -E '1d; /^<!--/d; s/\[([^]]*)\]\([^)]*\)/\1/g; s/^##/#/
    /^\*\*(Usage|Options)\*\*:$/d; s/^(```)console$/\1/; s/^\$ kquota/kquota/
    /^\|[-|]+$/d; /^\| (exit code|key|names) \|/d
    s/^\| ([^|]*) \| ([^|]*) \| (.*) \| ([^|]*) \|$/\n\1\n: Default: \2. Allowed: \3. Environment: \4./
    s/^\| ([^|]*) \| (.*) \|$/\n\1\n: \2/; s/\\\|/|/g' "docs/$1.md"
}

manual_page() { # NAME SECTION SUMMARY, with its text as input. What is code is bold: terminals have one font.
  { printf '# Name\n\n%s - %s\n\n# Description\n\n' "$1" "$3" && cat; } |
    lowdown -s -Tman --parse-no-intraemph --out-no-smarty -M title="$1" -M section="$2" -M volume=kquota \
      -M source="kquota $version" -M date="$date" | sed 's/\\fC/\\fB/g; s/\\f\[C[RB]*\]/\\fB/g' > "$folder/$1.$2"
}

mkdir -p "$folder"
{ reference command-line && cat packaging/manual.md; } |
  manual_page kquota 1 "keep the disks of an Apache Kafka cluster from running full"
{ reference configuration && printf '\n# See also\n\nkquota(1), systemd.exec(5)\n'; } |
  manual_page kquota-agent.yml 5 "configuration of the kquota agent"
# lowdown puts a paragraph macro after each heading, which mandoc skips.
! mandoc -Tlint -Wwarning "$folder"/* | grep -v "skipping paragraph macro: PP after"
