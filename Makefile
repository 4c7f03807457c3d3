# `make demo` and `make test` set up everything they need on a fresh Debian 12 or 13.
SHELL := /bin/sh
PY := .venv/bin/python
PIPELINE_PY := .venv-pipeline/bin/python
MVN := tools/maven/mvn -q -B -ntp -f callback/pom.xml
# The pipeline's own command looks for Maven on PATH.
WITH_LOCKED_MAVEN := PATH="$(CURDIR)/tools/maven:$$PATH"
# Loop-mounted file systems need root, in the demo and in the tests.
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E)
include tools/kafka-lines.mk
CALLBACK_JAR = callback/target/kquota-callback-$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/kquota/__init__.py).jar

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z0-9.-]*\):.*## /\1\t/p' Makefile | expand -t 17

.PHONY: demo
demo: deps ## Kafka on three throw-away hosts, kquota rolled out on them; a small disk fills (UNPROTECTED=1: without kquota)
	@tools/system-packages.sh fleet
	@$(MAKE) --no-print-directory -j3 $(if $(UNPROTECTED),,build/packages-of-this-suite) deps-fleet hosts-image
	$(AS_ROOT) $(PY) -m testbed.demo $(if $(UNPROTECTED),--unprotected) $(DEMO_ARGS)

.PHONY: hosts-image
hosts-image: deps
	@suite=$$(. /etc/os-release && echo "$${VERSION_CODENAME:-}"); case $$suite in \
	  bookworm | trixie) $(AS_ROOT) $(PY) -m testbed.hosts image "$$suite" ;; esac

.PHONY: demo-local
demo-local: deps callback ## The same on loopback, sooner: three brokers and agents without hosts (UNPROTECTED=1: without kquota)
	$(AS_ROOT) $(PY) -m testbed.demo --loopback $(if $(UNPROTECTED),--unprotected) $(DEMO_ARGS)

.PHONY: playground
playground: deps callback ## A protected cluster on loopback to play with, until Ctrl-C (see docs/tutorial.md)
	$(AS_ROOT) $(PY) -m testbed.demo --keep

.PHONY: test
test: deps-test ## Everything that every change has to pass, in streams side by side (STREAMS="unit lint": these alone; JOBS=1: in turn)
	@$(AS_ROOT) true
	@rm -f build/$@/*.result
	@$(MAKE) --no-print-directory -j$(or $(JOBS),3) -f tools/streams.mk PLAN=$@ PY=$(PY) AS_ROOT='$(AS_ROOT)'

.PHONY: test-spark
test-spark: deps-pipeline lint-pipeline ## The pipeline's tests, on a real Spark and a real Kafka
	@tools/system-packages.sh browser
	$(PIPELINE_PY) -m pytest tests/spark -m "not long" $(PYTEST_ARGS)

.PHONY: test-spark-long
test-spark-long: deps-pipeline ## Its campaigns
	$(PIPELINE_PY) -m pytest tests/spark -m long $(PYTEST_ARGS)

.PHONY: test-long
test-long: deps-test deps-pipeline ## The campaigns that take minutes each, one stream after the other (STREAMS="scenarios": these alone; JOBS=2: two at a time)
	@$(AS_ROOT) true
	@rm -f build/$@/*.result
	@$(MAKE) --no-print-directory -j$(or $(JOBS),1) -f tools/streams.mk PLAN=$@ PY=$(PY) AS_ROOT='$(AS_ROOT)'

.PHONY: test-scenario
test-scenario: ## A rollout on three hosts with a systemd of their own
	$(MAKE) scenario SCENARIO=default RESIDENT=1

.PHONY: fuzz
fuzz: deps ## Damaged input for every reader, new each time (FUZZ_SCALE=100: more of it; FUZZ_SEED=1: the same again); the plug-in's, too
	KQUOTA_FUZZ_SCALE=$(or $(FUZZ_SCALE),50) KQUOTA_FUZZ_SEED=$(or $(FUZZ_SEED),$$(date +%s)) KQUOTA_PROPERTY_SCALE=10 \
	  $(PY) -m pytest tests/fuzz tests/unit/policy/test_policy_properties.py $(PYTEST_ARGS)
	$(MVN) test -Dtest=DecisionFormatTest

# $(call tally,FOLDER): what the plug-in's tests there came to.
tally = @cat $(1)/surefire-reports/*.txt | awk -F '[:,]' '/^Tests run/ { run += $$2; failed += $$4 + $$6; skipped += $$8 } \
  END { print "callback: " run - failed - skipped " passed, " failed " failed, " skipped " skipped" }'

.PHONY: test-java
test-java: deps ## The callback's own tests
	$(MVN) verify
	$(call tally,callback/target)

.PHONY: test-java-long
test-java-long: deps ## Its campaigns, and Kafka's own tests of quotas with it, as Kafka has published them last
	$(MVN) -Plong -Dgroups=long -Dbuild.folder=target/long verify
	$(call tally,callback/target/long)
	$(MAKE) --no-print-directory $(KAFKAS_OWN_TESTS:%=test-kafkas-own-%)

.PHONY: $(KAFKAS_OWN_TESTS:%=test-kafkas-own-%)
$(KAFKAS_OWN_TESTS:%=test-kafkas-own-%): test-kafkas-own-%: | deps
	$(MVN) -Plong,kafka-$(basename $*),kafkas-own-tests -Dkafka.version=$* -Dbuild.folder=target/kafkas-own-$* test -Dtest='Kafkas*'
	$(call tally,callback/target/kafkas-own-$*)

.PHONY: test-java-4.0 test-java-4.2 test-java-4.3 test-java-4.4
test-java-4.0: deps ## Its tests on real brokers of Kafka 4.0, with the classes that are compiled against 4.1
	jars=$$($(PY) -m testbed.loopback.runtime $(filter 4.0.%,$(KAFKA_LINES))) && \
	  $(MVN) -Pkafka-4.0 -Dkafka.broker.jars="$$jars" test -Dtest='org.kquota.broker.Live*Test,!LiveStopTest'
	$(call tally,callback/target/kafka-4.0)
test-java-4.2: deps ## Its tests on Kafka 4.2
	$(MVN) -Pkafka-4.2 verify
	$(call tally,callback/target/kafka-4.2)
test-java-4.3: deps ## Its tests on Kafka 4.3
	$(MVN) -Pkafka-4.3 verify
	$(call tally,callback/target/kafka-4.3)
test-java-4.4: deps ## Its tests on Kafka 4.4, campaigns and all
	$(MVN) -Plong,kafka-4.4 verify
	$(call tally,callback/target/kafka-4.4)

.PHONY: mutants
mutants: ## Change agent and plug-in in small ways; fails where tests notice too few of the changes, and writes build/mutants/mutants.md
	-$(MAKE) --keep-going mutants-python mutants-java
	$(PY) -m tools.mutants

.PHONY: mutants-python
mutants-python: deps-mutants ## The agent's half (MUTANTS_ARGS="--resume": only what no test has killed yet)
	$(AS_ROOT) $(PY) -m tools.mutants.python_results $(MUTANTS_ARGS)

MUTANT_PACKAGES = admission decision quota govern fence group share threshold

.PHONY: mutants-java
mutants-java: deps ## Change the plug-in in small ways, and list what its packages' own tests do not notice (MUTANT_PACKAGES="quota share")
	for package in $(MUTANT_PACKAGES); do \
	  $(MVN) -Pmutants -Dmutants.package=$$package test-compile org.pitest:pitest-maven:mutationCoverage || exit 1; done
	$(PY) -m tools.mutants.java_results

.PHONY: lint
lint: lint-python lint-fleet lint-prose ## Style, types, the direction of dependencies, roles and plays, and prose

.PHONY: format
format: deps ## Python as `make lint` wants it: the order of imports, what ruff can correct, and the layout
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

.PHONY: lint-python
lint-python: deps
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	MYPYPATH=. .venv/bin/mypy -p tools -p bench -p testbed -p conformance -p plugins --exclude '^bench/pipeline/'
	.venv/bin/lint-imports
	.venv/bin/deptry agent
	cd spark && ../.venv/bin/deptry kquota_pipeline

# Pages, and the comments and messages of code; tools/prose/vale.ini has the exceptions.
PROSE = README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs schemas monitoring packaging agent spark testbed \
  bench conformance tools tests callback/README.md callback/src roles playbooks plugins inventories extensions
.PHONY: lint-prose
lint-prose: deps ## The words and patterns of docs/STYLE.md, by Vale
	tools/prose/vale.sh --config tools/prose/vale.ini --output line $(PROSE)

.PHONY: prose-counts
prose-counts: deps ## Count the words that others do not use, per 10,000, with our aims
	$(PY) -m tools.prose.counts

.PHONY: lint-fleet
lint-fleet: deps-fleet
	PATH="$(CURDIR)/.venv-fleet/bin:$$PATH" .venv-fleet/bin/ansible-lint --offline -q

.PHONY: lint-pipeline
lint-pipeline: deps-pipeline ## The types of the pipeline, which need Spark's
	MYPYPATH=. .venv-pipeline/bin/mypy --cache-dir .mypy_cache/pipeline --follow-imports silent -p kquota_pipeline -p bench.pipeline

.PHONY: reference
reference: deps ## Write the pages of reference, which are made from the code
	$(PY) -m tools.reference

.PHONY: evidence
evidence: deps ## Write the pages of evidence of this commit to docs/evidence: statements and their tests, faults, attacks
	$(PY) -m tools.evidence

.PHONY: docs
docs: deps-docs evidence ## The documentation as a site, in build/site; loads nothing from elsewhere
	rm -rf build/site
	.venv-docs/bin/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env --conf-dir tools/site --doctree-dir build/site-doctrees . build/site
	! grep -rEio -f tools/site/loads-from-elsewhere.txt --include '*.html' --include '*.css' --include '*.svg' build/site docs/img
	@echo build/site/docs/index.html

.PHONY: pictures picture-of-report
pictures: callback $(if $(REPORT),picture-of-report) ## Take the pictures in docs/img again, of a real run (REPORT=FILE: also of that report of the pipeline)
	$(AS_ROOT) $(PY) -m tools.pictures

# The browser reaches no host.
picture-of-report:
	@tools/system-packages.sh browser
	profile=$$(mktemp -d); trap 'rm -rf "$$profile"' EXIT; timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
	  --user-data-dir="$$profile" --host-resolver-rules='MAP * ~NOTFOUND' --window-size=1200,900 \
	  --screenshot=docs/img/pipeline-report.png "file://$$(realpath -e "$(REPORT)")"

.PHONY: callback
callback: $(CALLBACK_JAR) ## Build the broker plug-in

$(CALLBACK_JAR): callback/pom.xml $(shell find callback/src/main -type f 2>/dev/null)
	tools/system-packages.sh
	$(MVN) package -DskipTests
	touch $@

.PHONY: kafka-jars
kafka-jars: deps ## Fetch the Kafka that tests and demonstrations run on, once, and record its classes, so that it starts sooner
	@$(PY) -m testbed.loopback.class_archive

.PHONY: bench
bench: deps callback ## Measure how producers are held, compared with a peer and a stock broker (BENCH_ARGS="--resume")
	$(AS_ROOT) $(PY) -m bench $(BENCH_ARGS)

.PHONY: ledger
ledger: deps callback ## Account for every record of producers of each kind, through THROTTLE, PAUSE and faults (LEDGER_ARGS="--only fence-disk")
	$(AS_ROOT) $(PY) -m bench.ledger $(LEDGER_ARGS)

.PHONY: conformance
conformance: deps callback ## Fill disks of Kafka alone, with a peer and with kquota, the same way, and compare (CONFORMANCE_ARGS="--resume")
	$(AS_ROOT) $(PY) -m conformance $(CONFORMANCE_ARGS)

.PHONY: soak
soak: deps callback ## An hour under load: limits crossed and faults by lot, every record accounted for (SOAK_MINUTES=60 SOAK_SEED=1)
	$(AS_ROOT) $(PY) -m bench.soak $(SOAK_ARGS)

.PHONY: fault
fault: deps-fleet callback ## Inject one fault and print the expected and the observed state (F=F13)
	$(AS_ROOT) $(PY) -m tools.faults $(F)

.PHONY: faults
faults: deps-fleet callback ## Inject all of them, and note the results for make evidence (FAULTS_ARGS="--resume")
	$(AS_ROOT) $(PY) -m tools.faults $(FAULTS_ARGS)

.PHONY: scale
scale: deps ## Measure an agent in a cluster of 1,000 brokers and simulate fleets over days (SCALE_ARGS="--only fleet")
	$(PY) -m bench.scale $(SCALE_ARGS)

.PHONY: demo-pipeline
demo-pipeline: deps-pipeline ## A month of a made-up cluster, analysed: report, back-test, recommended limits
	.venv-pipeline/bin/kquota-pipeline demo $(DEMO_ARGS)

.PHONY: bench-spark
bench-spark: deps-pipeline ## Measure the cost of the pipeline, compared with DuckDB (BENCH_ARGS="--full": 690 million samples, too)
	$(PIPELINE_PY) -m bench.pipeline $(BENCH_ARGS)

.PHONY: deps
deps: ## Set up .venv (with .venv/bin/kquota) and what Debian provides
	@tools/system-packages.sh
	@tools/virtual-environment.sh

.PHONY: deps-fleet
deps-fleet: deps ## Besides: .venv-fleet with Ansible and its tools, and what throw-away hosts with systemd need
	@tools/system-packages.sh fleet
	@tools/virtual-environment.sh fleet

.PHONY: deps-test
deps-test: ## What all the tests need, but for the environments of the pipeline and of the site
	@tools/system-packages.sh fleet browser
	@tools/virtual-environment.sh
	@tools/virtual-environment.sh fleet

.PHONY: deps-pipeline
deps-pipeline: ## Set up .venv-pipeline (with .venv-pipeline/bin/kquota-pipeline), and the jars that Spark needs
	@tools/system-packages.sh
	@tools/virtual-environment.sh pipeline
	@$(WITH_LOCKED_MAVEN) .venv-pipeline/bin/kquota-pipeline jars >/dev/null

.PHONY: deps-docs
deps-docs: ## Set up .venv-docs with Sphinx
	@tools/system-packages.sh
	@tools/virtual-environment.sh docs

.PHONY: deps-mutants
deps-mutants: deps ## Set up .venv-mutants with mutmut
	@tools/virtual-environment.sh mutants

.PHONY: audit
audit: deps ## Compare the installed packages with their lock, list their licences, and refuse a licence that is not known here
	$(PY) -m pip install --quiet --dry-run --no-index --no-deps --require-hashes -r requirements/dev.txt
	.venv/bin/pip-licenses --order license --partial-match --ignore-packages kquota \
	  --allow-only 'Apache;BSD;MIT;ISC;MPL;Mozilla;PSF;Python Software;LGPL;Lesser General;Zope'

.PHONY: lock
lock: deps ## Lock the Python requirements and all that Maven resolves again
	tools/lock.sh

SCENARIO ?= default
# What scenarios need besides the packages of this version.
NEEDED_upgrade = packages-of-previous-version
NEEDED_wheels = packages-of-previous-version dist/agent-wheels/3.13/wheels.txt
# With RESIDENT=1, processes that stay on the hosts do the tasks, in a fraction of the time. The path of Python
# is set: a task for one host (run_once) would detect it there, and use it for all.
RESIDENT_STRATEGY = ANSIBLE_STRATEGY=resident ANSIBLE_STRATEGY_PLUGINS="$(CURDIR)/extensions/molecule/shared/strategy" \
  ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3
.PHONY: scenario
scenario: deps-fleet $(if $(filter pipeline,$(SCENARIO)),build/pipeline-wheels-3.11,packages-of-debian $(NEEDED_$(SCENARIO))) ## One of Molecule's scenarios on throw-away hosts (SCENARIO=default SCENARIO_KAFKA=4.0.2)
	$(AS_ROOT) env PATH="$(CURDIR)/.venv-fleet/bin:$$PATH" FLEET_OWNER_PID=$$$$ SCENARIO_KAFKA=$(SCENARIO_KAFKA) $(if $(RESIDENT),$(RESIDENT_STRATEGY)) \
	  .venv-fleet/bin/python tests/fleet/process_lists.py .venv-fleet/bin/molecule test -s $(SCENARIO)

# All of them as operators run Ansible; test-scenario runs `default` otherwise.
LONG_SCENARIOS = default log-dirs pipeline uninstall upgrade wheels
.PHONY: scenarios
scenarios: $(addprefix scenario-,$(LONG_SCENARIOS)) ## All of them, one after the other
.PHONY: $(addprefix scenario-,$(LONG_SCENARIOS))
$(addprefix scenario-,$(LONG_SCENARIOS)):
	$(MAKE) scenario SCENARIO=$(@:scenario-%=%)

.PHONY: built-for-campaigns
built-for-campaigns: callback kafka-jars packages-of-all-suites packages-of-previous-version \
  dist/agent-wheels/3.13/wheels.txt build/pipeline-wheels-3.11

PACKAGED = $(shell find agent packaging requirements tools/packages docs/command-line.md docs/configuration.md -type f -not -path '*/__pycache__/*' 2>/dev/null) pyproject.toml tools/wheels.py
.PHONY: packages-of-debian packages-of-all-suites
packages-of-debian: build/packages-of-debian
packages-of-all-suites: build/packages-of-all-suites

# What test hosts can boot.
build/packages-of-debian: $(CALLBACK_JAR) $(PACKAGED) | deps
	tools/packages/build.sh bookworm trixie
	mkdir -p $(@D)
	touch $@

build/packages-of-all-suites: build/packages-of-debian
	tools/packages/build.sh noble el9 el10
	touch $@

AGENT_PYTHON ?= 3.11
.PHONY: agent-wheels
agent-wheels: dist/agent-wheels/$(AGENT_PYTHON)/wheels.txt ## The wheels that the role kquota_agent installs, into dist/ (AGENT_PYTHON=3.11: of its hosts)

dist/agent-wheels/%/wheels.txt: $(PACKAGED) | deps
	$(PY) -m tools.wheels agent $* $(@D)

# What upgrades are tried from: there is no release yet, so that these sources have to stand for one.
PREVIOUS_VERSION = 0.0.9
.PHONY: packages-of-previous-version
packages-of-previous-version: build/packages-of-previous-version

build/packages-of-previous-version: callback/pom.xml $(shell find callback/src/main -type f 2>/dev/null) $(PACKAGED) | deps
	tools/packages/as-version.sh $(PREVIOUS_VERSION) $@ bookworm trixie
	touch $@

build/packages-of-this-suite: $(CALLBACK_JAR) $(PACKAGED) | deps
	@begun=$$(date +%s); tools/packages/build.sh && echo "$$(($$(date +%s) - begun)) s for the packages"
	mkdir -p $(@D)
	touch $@

PIPELINE_PYTHON ?= 3.11
.PHONY: pipeline-wheels
pipeline-wheels: build/pipeline-wheels-$(PIPELINE_PYTHON) ## The wheels that the role kquota_pipeline installs, into dist/ (PIPELINE_PYTHON=3.11: of its hosts)

PIPELINE_WHEELED = $(shell find agent spark -type f -not -path '*/__pycache__/*' 2>/dev/null) requirements/pipeline.txt tools/wheels.py tools/packages/download.sh
build/pipeline-wheels-%: $(PIPELINE_WHEELED) pyproject.toml | deps-pipeline
	$(WITH_LOCKED_MAVEN) $(PIPELINE_PY) -m tools.wheels pipeline $* dist
	mkdir -p $(@D)
	rm -f build/pipeline-wheels-*
	touch $@

.PHONY: packages
packages: deps callback ## Build the packages into dist/ (SUITES="bookworm trixie noble el9 el10": for other distributions than this machine's)
	tools/packages/build.sh $(SUITES)

.PHONY: release
release: deps-fleet deps-docs audit ## Everything of a release into dist/release, built twice and compared; KQUOTA_RELEASE_KEY=FILE signs its list
	@tools/system-packages.sh release
	@tools/virtual-environment.sh release
	tools/release/release.sh

.PHONY: sign
sign: ## List and sign the packages, wheels and jars in dist/ (KQUOTA_RELEASE_KEY=FILE), for roles with kquota_release_signers
	tools/release/list.sh dist
	tools/release/sign.sh dist

.PHONY: clean
clean: ## Remove what was built here
	rm -rf .venv .venv-fleet .venv-pipeline .venv-docs .venv-mutants .venv-release build dist callback/target .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
