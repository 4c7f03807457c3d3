package org.kquota;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;

import org.junit.jupiter.api.Test;
import org.kquota.govern.GovernorLaw;

import java.nio.file.Path;

/** Which package may know which, and what each may touch. */
class PackagesTest {
    private static final JavaClasses JAR = new ClassFileImporter().importPath(Path.of(System.getProperty("kquota.jar.classes")));
    private static final String[] FILES = {"java.nio.file..", "java.nio.channels.."};
    private static final String[] FILES_BEANS_AND_NETWORK =
        {"java.nio.file..", "java.nio.channels..", "java.net..", "java.lang.management..", "javax.management.."};

    private static void check(ArchRule rule) {
        rule.check(JAR);
    }

    @Test
    void noTwoPackagesKnowEachOther() {
        check(slices().matching("org.kquota.(*)..").should().beFreeOfCycles());
    }

    @Test
    void noPackageKnowsTheClassesThatConfigurationsName() {
        check(noClasses().that().resideInAPackage("org.kquota.*..").should().dependOnClassesThat().resideInAPackage("org.kquota"));
    }

    @Test
    void theRootHasNothingButWhatConfigurationsName() {
        check(classes().that().resideInAPackage("org.kquota")
            .should(ArchCondition.from(belongToAnyOf(KquotaCallback.class, KquotaAuthorizer.class, CallbackWithoutMetrics.class,
                AuthorizerWithoutMetrics.class, CheckProperties.class))));
    }

    @Test
    void theLawIsArithmetic() {
        check(classes().that().belongToAnyOf(GovernorLaw.class)
            .should().onlyDependOnClassesThat(belongToAnyOf(GovernorLaw.class)
                .or(resideInAnyPackage("java.lang", "java.lang.invoke", "java.lang.runtime"))));
    }

    @Test
    void theGovernorKnowsNeitherKafkaNorFiles() {
        check(noClasses().that().resideInAPackage("org.kquota.govern..")
            .should().dependOnClassesThat().resideInAPackage("org.apache.kafka..")
            .orShould().dependOnClassesThat().resideInAnyPackage(FILES_BEANS_AND_NETWORK));
    }

    @Test
    void decisionsKnowNothingOfKafka() {
        check(noClasses().that().resideInAPackage("org.kquota.decision..").should().dependOnClassesThat().resideInAPackage("org.apache.kafka.."));
    }

    @Test
    void onlyTheDecisionsFileAndTheClockReadFiles() {
        check(noClasses().that().resideInAPackage("org.kquota.decision..")
            .and().haveSimpleNameNotStartingWith("DecisionFile").and().haveSimpleNameNotStartingWith("BootClock")
            .should().dependOnClassesThat().resideInAnyPackage(FILES_BEANS_AND_NETWORK));
    }

    @Test
    void quotasKnowNothingOfTheBrokersInside() {
        check(noClasses()
            .that().resideInAnyPackage("org.kquota.quota..", "org.kquota.group..", "org.kquota.share..", "org.kquota.metering..")
            .should().dependOnClassesThat().resideInAnyPackage("kafka..", "org.apache.kafka.metadata..", "org.apache.kafka.storage..", "org.apache.kafka.image.."));
    }

    @Test
    void requestsMeetNoFiles() {
        check(noClasses()
            .that().resideInAnyPackage("org.kquota.metering..", "org.kquota.quota..", "org.kquota.group..", "org.kquota.share..", "org.kquota.fence..",
                "org.kquota.accounting..", "org.kquota.error..")
            .should().dependOnClassesThat().resideInAnyPackage(FILES));
    }
}
