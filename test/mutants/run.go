package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Outcome of a mutant.
type Outcome int

// The outcomes.
const (
	Survived Outcome = iota
	Caught
	Broken // it does not compile: no mutant at all
)

func (o Outcome) String() string { return [...]string{"survived", "caught", "does not compile"}[o] }

// suite is a package's tests, or some of them.
type suite struct{ pkg, run, skip string }

// suites of a mutant, to be run one after the other until one fails. What is made by machine meets its own package's tests
// first: they take seconds where the harness takes minutes. What is made by hand must be seen by the harness, which
// names none of its constructs. quick leaves the harness out for the others.
func suites(m Mutant, quick bool) (list []suite) {
	pkg := filepath.Dir(m.File)
	if m.Machine {
		list = append(list, suite{pkg: "./" + pkg, run: "^Test", skip: "TestLongStatements|TestHostileSizes|ConcurrentWriters|TestTriples|FromEachOther"})
	}
	if quick && m.Machine {
		return list
	}
	if pkg == "rls" && !m.Machine { // below the proxy, as whom PUBLIC lets write, after DDL, through views of ours, over the catalogs, and by masks: seconds
		list = append(list, suite{pkg: "./rls", run: "TestAgentsWriteNothingThatPublicMay|TestNothingIsWrittenUnderAnOlderCatalog|TestNothingIsReadUnderAnOlderCatalog|TestViewsWriteVisibleRows|TestNothingRunsOnHiddenRowsOfCatalogs|TestNoMaskShowsWithoutItsCondition|TestKeptWhereSomebodyMustHaveAgreed|TestSubjectsOfGroups|TestWhatTimeHides|TestPrivacyTellsWhatHolds|TestTablesWithChildrenAreNotWatched"})
	}
	if pkg == "rewrite" && !m.Machine { // whole classes of what a text may name, read, write and send through a door: operators, relations, keys, locks, places; seconds
		list = append(list, suite{pkg: "./rewrite", run: "TestFoundByKey$|TestTimeBounds|TestPrefixSearch|TestWritesFoundByKey|TestOperatorsOfOthersStandNowhere|TestWhatNoDataFileHasIsRefused|TestNamesOfAllRelations|TestNamesInDocuments|TestRowsThatNobodyMayHold|TestKeysAreCounted|TestKeysAreFixed|TestViewsReadNothingByKey|" +
			"TestOnlyPlainSearchesHaveTwins|TestIndexesOfPartsAreFenced|TestNoOtherAggregateIsOfCells|TestSumsInsideExpressions|TestRefusedAmongOthers|TestAnyIsOfEquality|" +
			"TestUnvettedWhereverItStands|TestParametersOfTheDoor|TestDoorTextsAreQualified|TestPlainReads|TestWhatCellsTellOfStandsAnywhere|TestGroupsAreOfCells|TestAnswersDependOnWhatIsRead|TestOnlyListed|TestNamedStatementsToTheToken|TestEveryTimeHasTheseParts|TestUsingIsOfOneType|TestOutputsTakeTheDoor|TestIndexedVectors|TestPatternsOfParts|TestCare|TestDistancesThatFailAreFenced|TestSystemColumnsAreNotCopied|TestSizesChangeNamesOnly|TestFoundFirstKeepsTypesOfParameters|TestStandInsAnswer|TestParametersThatCastsOfOthersTake|TestWhatIsSetWithCareIsNotShown|TestWhatKeepsItsSnapshot|TestWhatSetsAClaim|TestCollationsApart|TestWhatIsFixedIsFixed|TestColumnsAreReadWhereverTheyStand|TestTimeoutsAreBounded"})
	}
	if pkg == "predicate" && !m.Machine { // the reference model, of the registry as well, and what hides rows by it; seconds
		list = append(list, suite{pkg: "./predicate", run: "TestWhatCannotBeWrittenHides|TestConstantsReplaceNothingInQuotes|TestFormsAgree|TestNothingElseHidesRows|TestConsentByRegistry|TestColumnsAreFoundWhereverTheyStand|TestWhatHasADoor|TestListsAreRead"})
	}
	if pkg == "policy" && !m.Machine { // whatever changes a policy changes its version, what rows that agents write must be, and what these reach and are compared with; seconds
		list = append(list, suite{pkg: "./policy", run: "TestContractsHoldForParts|TestVersionsTellPoliciesApart|TestWhatRowsMustBe|TestIndexesThatCompareAnything|TestWhatSuchIndexesTell|TestWhatIsAskedAnew|TestWhatPartsTell|TestVirtualColumns|TestKeysOfSomeRows|TestPartsAreUnderAll|TestContractsAreHeld|TestKeptIsRefused|TestDerivedAsksWhat|TestDerivedIsRefused"}, suite{pkg: "./rls", run: "TestNoMaskShowsWithoutItsCondition"}, suite{pkg: "./e2e", run: "TestChangesThatReachHiddenRows"})
	}
	if strings.HasPrefix(pkg, "catalog") && !m.Machine { // what is read of a database, and when it is read again; seconds
		list = append(list, suite{pkg: "./catalog/pgcatalog", run: "TestRelations|TestQuietTables|TestTriggersThatWriteTheTime|TestTypesThatRunFunctionsOfOthers|TestReplacedFunctionsOfExtensions|TestTablesThatRunFunctionsOfOthers|TestKeysThatExclude|TestTypesAndWhatTheyRun|TestAggregatesAreWhatTheyAreMadeOf|TestNothingIsLoadedThatTheFingerprintDoesNotTell"}, suite{pkg: "./catalog", run: "TestNamesAreResolvedAsPostgreSQLDoes"})
	}
	if properties := map[string]string{ // of each, what holds whatever is sent, asked or changed; seconds
		"proxy": "TestFreshness$|TestWhatIsSentInAdvanceIsAskedAboutInTurn|TestOutcomeOfWhatIsNotAnswered|TestPortalOfAFailedQuery|TestRecords$|TestNothingGoesUpstreamUndecided|TestClaimsAreTheServers|TestRecheck|TestNoResultIsLongerThanItsBound|TestAsidesOfTheServer|TestPassages|TestNothingElsePasses|TestWhoIsNotServed|TestCancelKeys|TestTLSOfOldVersions|TestWhatWaitsIsAskedAboutAsThat|TestClaimsBehindWhatFails|TestWhatChangesClaims|TestEachMessageHasItsAnswers|TestContextsOfOthers|TestNobodyTells|TestNothingRunsWithoutASeal|TestDeclaredTypesAreJudged|TestNoTransactionUnderAStaleSeal|TestHeldCursorsKeepTheirClaims|TestSettingsAreJudgedAs|TestScriptsWithinBounds|TestWhatSQLRunsByName|TestAForeignServerIsAskedInOneStatement|TestStatementsThatBeginApart",
		"enforce": "TestKeptVerdictsAreThoseMadeAnew|TestStatesAreToldApart|TestWhateverChangesOfAnAgentEndsItsSessions|TestWhatTokensGive|TestWhatChangesDuringALogin|TestPinnedSettings|TestWhatWasSeenMayBeShown|TestLimitsHoldWhateverIsAsked|TestOnlyWhatIsFullIsForgotten|TestQuotasCountTogether|TestContractsHoldForEachStatement|TestContractsOfANewPolicy|TestWhatMayDoMore|TestNoRecordNoCall|TestEveryTableIsRecorded|TestCheckRefuses|TestDeclaredTypesAtAnyPlace|TestUnnoticedAmongOthers|TestTimeoutOfANewPolicy|TestWhatIsLookedAtAgain|TestClaimsAreLetThrough|TestRowsOfTwoMentions|TestWhatMayReadUnsaid|TestWhatStatementsReadInTheEnd|" +
			"TestGateStaysShut|TestNothingIsAnsweredUnderAnOlderCatalog|TestDDLThatNobodyHeardOf|TestDeclaredTypesArePlannedWithCare|TestPlainVerdictsStayPlain|TestDeclaredTypesAreCastByNobodyElse|TestContractsGoByWhatIsClaimedNow|TestClaimsThatNoPolicyDeclares",
		"consent":  "TestDecideProperties",
		"sqltext":  "TestProve|TestSpliceAgreesWithTheModel|TestConditionsOfGroups|TestOnlyPlacesAreStripped|TestWalksMissNothing|TestNamesOfTheParser|TestBrokenTextAnywhere|TestLiteralsAreLeftOut|TestPlaces|TestDepthOfRandomText|TestCopiesOfCopies|TestRunsOfOperators",
		"identity": "TestForgedSignatures|TestKeysOfAProvider|TestProviderInTrouble|TestBrokenFile",
		"audit":    "TestWhatACrashLeaves|TestWhatWaitsIsBounded|TestAnchorIsGoneOnWith|TestOutcomesBelongToDecisions|TestWhatIsWaitedForIsDurable",
	}[pkg]; properties != "" && !m.Machine {
		list = append(list, suite{pkg: "./" + pkg, run: properties})
	}
	if pkg == "verdict" && !m.Machine { // what runs by name, and what it tells the wire of a text is held against the server
		list = append(list, suite{pkg: "./verdict", run: "TestRunnable|TestLongNamesAreToldApart|TestPlainExpression|TestPlainTextQuery"}, suite{pkg: "./proxy", run: "TestClaimsAreTheServers|TestClaimsBehindWhatFails|TestWhatChangesClaims|TestRecords$|TestNothingGoesUpstreamUndecided"})
	}
	if base := filepath.Base(m.File); pkg == "verdict" || base == "care.go" || strings.HasPrefix(base, "cautious") || base == "inbound.go" || base == "fence.go" { // what hidden rows decide of what fails
		list = append(list, suite{pkg: "./test/attacks", run: "TestTwoIndexesTellNothing|TestPoliciesComeFirst|TestComparisonsTellNothing|TestHiddenRowsReachNothing|TestWritesAskAsReadsDo|TestOwnersCodeInWritesTellsNothing|TestWhatComparesByItselfTellsNothing|TestWhatNoTextNamesTellsNothing"})
	}
	if base := filepath.Base(m.File); strings.HasPrefix(base, "vet") || base == "form.go" || base == "regexp.go" || base == "textquery.go" || base == "values.go" || base == "uses.go" { // what fails where hidden rows may decide whether it runs
		list = append(list, suite{pkg: "./test/attacks", run: "TestWhatComparesByItselfTellsNothing|TestSumsBehindTheGate|TestTextQueriesBehindTheGate|TestParametersBehindTheGate|TestExecuteLooksAtNoValue|TestTheGateFindsFirst|TestFoundByKeyTellsNothing|TestWritesFoundByKeyTellNothing|TestExpressionsBehindTheGate|TestHowManyAreHiddenTellsNothing|TestHiddenRowsReachNothing"})
	}
	if base := filepath.Base(m.File); base == "steps.go" || base == "foreign.go" { // what is withdrawn, here or on another server, while a message runs
		list = append(list, suite{pkg: "./test/attacks", run: "TestAMessageIsNoMoment|TestAForeignServerIsAskedOnce"})
	}
	if base := filepath.Base(m.File); base == "origin.go" || base == "description.go" { // how results are described
		list = append(list, suite{pkg: "./test/attacks", run: "TestResultsAreDescribedAsWhatWasNamed"})
	}
	list = append(list, suite{pkg: "./test/mutants/suite", run: "."})
	if pkg == "predicate" || pkg == "rls" { // last: it sees that the walls are others, not that they let something through
		list = append(list, suite{pkg: "./test/written", run: "."})
	}
	return list
}

// patience bounds a suite: a mutant that makes a statement run for ever is caught too.
const patience = 12 * time.Minute

// drawn are the packages whose properties rapid draws: ten times as often as it does by itself, so that what is seen does not go by luck, and
// without a file of what failed.
var drawn = []string{"./predicate", "./consent"}

// Try builds the suites with the mutant and runs them.
func Try(ctx context.Context, root string, m Mutant, quick bool) (Outcome, string, error) {
	text, err := m.Apply(root)
	if err != nil {
		return Broken, "", err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return Broken, "", err
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
		return Broken, "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): changed}})
	if err != nil {
		return Broken, "", err
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		return Broken, "", err
	}
	for i, s := range suites(m, quick) {
		binary := filepath.Join(dir, fmt.Sprintf("suite%d", i))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, s.pkg)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return Broken, string(out), ctx.Err()
		}
		run := exec.CommandContext(ctx, binary, "-test.run", s.run, "-test.skip", s.skip, "-test.failfast", "-test.timeout", patience.String())
		if slices.Contains(drawn, s.pkg) {
			run.Args = append(run.Args, "-rapid.nofailfile", "-rapid.checks=1000")
		}
		run.Dir = filepath.Join(root, s.pkg)
		out, err := run.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return Caught, s.pkg + ": " + first(string(out)), ctx.Err()
		}
		if err != nil {
			return Broken, "", err
		}
	}
	return Survived, "", nil
}

// first is the first line that says what was wrong; reports of what was counted do not.
func first(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, ".go:") && !strings.Contains(line, " answered, ") || strings.HasPrefix(line, "panic:") {
			line = strings.TrimSpace(line)
			return line[:min(len(line), 200)]
		}
	}
	return strings.TrimSpace(out[:min(len(out), 200)])
}
