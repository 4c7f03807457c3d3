#!/bin/sh
# lock.sh: writes requirements/maven.sha256 with all that Maven resolves in this repository, and the pipeline's list of its jars. A file
# that was locked before must still be the same.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
KQUOTA_LOCK_FOUND=$work/found
export KQUOTA_LOCK_FOUND
system_path=$PATH
maven() { tools/maven/mvn -q -B -ntp -Dbuild.folder="$work/target" "$@"; }
runtime="maven -f testbed/loopback/runtime/pom.xml"
plug_in="maven -f callback/pom.xml"
unbuilt="-Dmaven.main.skip=true -Dmaven.test.skip=true"
# By the full name: to find a short one, Maven fetches plug-ins that no build here uses.
dependencies=org.apache.maven.plugins:maven-dependency-plugin
copy=$dependencies:copy-dependencies

# Those of Debian 12 and 13, which do not resolve the same for the same build.
for version in 3.8.7 3.9.9; do
  echo "With Maven $version: the plug-in, its tests, and its mutants"
  PATH=$system_path
  $runtime $dependencies:copy -Dartifact=org.apache.maven:apache-maven:$version:tar.gz:bin -DoutputDirectory="$work"
  tar --extract --gzip --file "$work/apache-maven-$version-bin.tar.gz" --directory "$work"
  PATH=$work/apache-maven-$version/bin:$system_path
  # Surefire resolves how it runs tests when it runs one.
  $plug_in clean verify -Dtest=ReadmeTest
  for profile in kafka-4.2 kafka-4.3 kafka-4.4; do $plug_in -P$profile $unbuilt verify; done
  for own in $(sed -n 's/^KAFKAS_OWN_TESTS := //p' tools/kafka-lines.mk); do
    $plug_in -Pkafka-"${own%.*}",kafkas-own-tests -Dkafka.version="$own" $unbuilt verify
  done
  $plug_in -Pmutants -DskipPitest=true $unbuilt test-compile org.pitest:pitest-maven:mutationCoverage
  echo "With Maven $version: Kafka, the benchmarks, the pipeline's jars, the bills of materials"
  $runtime $copy -DincludeScope=runtime -DoutputDirectory="$work/kafka"
  for former in 3.9.2 $(sed -n 's/^KAFKA_LINES := //p' tools/kafka-lines.mk); do $runtime $copy -DincludeScope=runtime -DoutputDirectory="$work/kafka" -Dkafka.version=$former; done
  maven -f bench/peer-pom.xml $copy -DincludeScope=runtime -DoutputDirectory="$work/peer"
  maven -f bench/request-path/pom.xml package $copy -DincludeScope=runtime
  maven -f spark/kquota_pipeline/jars/pom.xml $copy -DoutputDirectory="$work/pipeline"
  for folder in callback spark/kquota_pipeline/jars; do
    mkdir -p "$work/bom/$folder"
    cp $folder/pom.xml "$work/bom/$folder/"
    maven -f "$work/bom/$folder/pom.xml" org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom
  done
done

LC_ALL=C sort -u -k2 "$work/found" > requirements/maven.sha256
(cd "$work/pipeline" && LC_ALL=C sha256sum -- *.jar) > spark/kquota_pipeline/jars/jars.sha256
