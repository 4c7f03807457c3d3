# What `make test` runs side by side and `make test-long` in turn (CONTRIBUTING.md, "Streams"): a target for each stream, with
# its targets of the Makefile in order, or its Python tests: each belongs to the stream that names the nearest folder.
# Streams begin in the order of ALL, at most JOBS at once.
ifeq ($(PLAN),test)
ALL := build lint hosts spine roles spark kafka unit java load
MARKS := not long
build-makes := callback kafka-jars
lint-makes := lint-python lint-prose docs
hosts-makes := lint-fleet test-scenario
spark-makes := test-spark
java-makes := test-java
load-tests := tests/integration/demo/test_demo.py tests/integration/demo/test_load.py \
  tests/integration/demo/test_overshoot.py tests/integration/fence tests/integration/ledger tests/integration/quotas \
  tests/integration/versions
spine-tests := tests/integration/spine tests/integration/soak tests/integration/tutorial
kafka-tests := tests/integration $(patsubst %,--ignore=%,$(load-tests) $(spine-tests))
roles-tests := tests/fleet/roles
unit-tests := tests $(patsubst %,--ignore=%,tests/integration $(roles-tests) tests/spark)
else
ALL := build load scenarios java brokers java-4.4 hosts java-4.3 java-4.2 java-4.0 demo spark rest
MARKS := long
build-makes := built-for-campaigns
scenarios-makes := scenarios
spark-makes := test-spark-long
java-makes := test-java-long
java-4.0-makes := test-java-4.0
java-4.2-makes := test-java-4.2
java-4.3-makes := test-java-4.3
java-4.4-makes := test-java-4.4
load-tests := tests/integration/conformance tests/integration/demo tests/integration/fence tests/integration/ledger tests/integration/quotas tests/integration/versions
brokers-tests := tests/fleet/test_one_broker.py tests/fleet/test_silent_broker.py tests/fleet/test_three_brokers.py
demo-tests := tests/fleet/test_demo.py
hosts-tests := tests/fleet $(patsubst %,--ignore=%,$(brokers-tests) $(demo-tests))
rest-tests := tests $(patsubst %,--ignore=%,$(load-tests) tests/fleet tests/spark)
endif

CHOSEN := $(or $(STREAMS),$(ALL))
$(if $(filter-out $(ALL),$(CHOSEN)),$(error $(filter-out $(ALL),$(CHOSEN)): the streams are $(ALL)))
BEGUN := $(shell date +%s)
RECORDS := build/$(PLAN)
RESULTS = $(CHOSEN:%=$(RECORDS)/%.result)
export AS_ROOT

.PHONY: all $(ALL)
all: $(CHOSEN)
	@echo "===== make $(PLAN), $$((($$(date +%s) - $(BEGUN)) / 60)) min" && cat $(RESULTS) && ! grep -q FAILED $(RESULTS)

# $(call after,STREAMS): those that end first, well or not, as far as they are run. Long streams wait for none: when what
# they wait for ends, make begins the next ones in the order, and comes back to them when those run.
# Hosts go before others for the processors (testbed/hosts/cgroups.py), and Spark takes all: rates are compared after them.
after = $(filter $(CHOSEN),$(1))
$(filter-out build lint,$(ALL)): $(call after,build)
ifeq ($(PLAN),test)
java: $(call after,lint roles spark)
load: $(call after,lint roles hosts)
else
java: $(call after,load)
java-4.4: $(call after,load java)
java-4.3: $(call after,load java java-4.4)
java-4.2: $(call after,load java java-4.4 java-4.3)
java-4.0: $(call after,load java java-4.4 java-4.3 java-4.2)
spark: $(call after,load java java-4.4 java-4.3 java-4.2 java-4.0)
endif

PYTEST = $(AS_ROOT) $(PY) -m pytest $($@-tests) -m '$(MARKS)' -o cache_dir=$(RECORDS)/$@.cache \
  --durations=20 --durations-min=2 $(PYTEST_ARGS)
$(ALL):
	@tools/stream.sh $(RECORDS)/$@.log $(if $($@-makes),make $($@-makes),$(PYTEST))
