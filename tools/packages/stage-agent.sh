#!/bin/sh
# stage-agent.sh DOWNLOADS STAGE PYTHON_VERSION MACHINE SYSTEMD: puts the agent below STAGE/opt/kquota, as a virtual environment of
# that /usr/bin/python3.X. Uses no network. DOWNLOADS/wheels holds what build-wheels.sh has made, DOWNLOADS/build what that was built
# with. SYSTEMD is where the distribution has its own package `systemd` for Python, or empty if that is among the wheels. left-out.txt and
# target.sh are in the folder of this script. If /usr/bin/python3 is another Python, a file makes the installation compile the modules.
set -eu
export PIP_ROOT_USER_ACTION=ignore
here=$(dirname "$0")
downloads=$1 stage=$2 version=$3 machine=$4 systemd=$5
home="$stage/opt/kquota"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages="$home/lib/python$version/site-packages"

/usr/bin/python3 -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
pip install --no-index --no-deps "$downloads"/build/pip-*.whl

mkdir -p "$packages" "$home/bin"
# shellcheck disable=SC2046  # options without spaces
pip install --no-index --no-deps --no-compile $("$here/target.sh" "$version" "$machine") --target "$packages" "$downloads"/wheels/*.whl
[ -z "$systemd" ] || ln -s "$systemd" "$packages/systemd"
rm -rf "$packages/bin"
# The path of the wheel on the building machine does not belong into the package.
find "$packages" -name direct_url.json -delete
while read -r glob _reason; do
  case $glob in '' | '#'*) continue ;; esac
  [ ! -L "$packages/${glob%%/*}" ] || continue
  found=$(cd "$packages" && find . -path "./$glob" -prune)
  [ -n "$found" ] || { echo "left-out.txt: $glob matches nothing: remove it from the list, or correct it" >&2; exit 1; }
  (cd "$packages" && printf '%s\n' "$found" | xargs -d '\n' rm -r)
done < "$here/left-out.txt"
# dpkg knows what is installed; these lists would name what is not.
find "$packages" -path '*.dist-info/RECORD' -delete

printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' "$version" > "$home/pyvenv.cfg"
# The minor version is part of the name: another Python would not find its packages.
ln -s "/usr/bin/python$version" "$home/bin/python3"
ln -s python3 "$home/bin/python"
# -I: neither PYTHONPATH nor the working directory decide what the agent runs.
cat > "$home/bin/kquota" <<'SCRIPT'
#!/opt/kquota/bin/python3 -I
from kquota.cli.main import main

main()
SCRIPT
chmod 755 "$home/bin/kquota"
# No user may write there later. Not checked against the sources' times, which packaging changes.
if [ "$version" = "$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ]; then
  /usr/bin/python3 -m compileall -q -s "$stage" -p / --invalidation-mode unchecked-hash "$packages"
else
  touch "$home/compile"
fi
