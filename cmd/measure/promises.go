package main

import (
	"slices"
	"strings"
	"time"
)

// sharedDir lies beside the tree where the shared data sets are; what needs them says so
// where they are not.
const sharedDir = "../shared"

// Commands that several proofs read.
var (
	build    = job{name: "build", argv: []string{"make", "-s", "build"}, limit: 5 * time.Minute, alone: true}
	check    = job{name: "make check", argv: []string{"make", "-s", "check"}, limit: 15 * time.Minute, alone: true, long: true}
	evalGate = timed(eval("gates"))
	evalOrg  = eval("org")
	wireTest = job{name: "providers' own clients", argv: []string{"go", "-C", "tools/wire", "test", "-count=1", "./..."}, limit: 10 * time.Minute}
)

// timed is a job that must run alone.
func timed(j job) job {
	j.alone = true
	return j
}

// eval is one of the shared evaluations of the built binary.
func eval(set string, more ...string) job {
	script := sharedDir + "/tools/eval_" + set + ".py"
	return job{
		name: strings.Join(append([]string{"eval", set}, more...), " "), needs: script, limit: 15 * time.Minute,
		argv: append([]string{"sh", "-c", `exec python3 ` + script + ` --bin "$PWD/bin/passepartout" "$@"`, "eval"}, more...), // it changes the directory
	}
}

// promises are what the issues said must be shown, in their order.
var promises = slices.Concat(foundation, orgFiles, memoryStore, gateStack, actuators, models, recallAndContext, approvals, skills, background, terminal, elsewhere)

// The binary comes first: the evaluations use it.
var foundation = []promise{
	{2, "size of the stripped binary", "≤ 30 MB", []proof{weighing(build, "bin/passepartout", atMost(30))}},
	{2, "make check", "≤ 120 s on 2 cores", []proof{lasting(check, atMost(120))}},
	{2, "the README's and the manual's commands do what they show", "all", []proof{passing("cmd/passepartout", "^TestDocumentsShowWhatHappens$")}},
	{2, "invariants 1–8 and 13, from outside the packages", "TestINV… pass; a planted ungated call does not compile", []proof{
		passing("gate", "^TestINV0[1-8]"), passing("agent", "^TestINV(0[1-8]|13)"), passing("daemon", "^TestINV0[1-8]"), passing("proto", "^TestINV0[1-8]"), passing("act", "^TestINV0[1-8]"),
	}},
	{2, "the ancestor's holes are closed", "each a test", []proof{
		passing("daemon", "^TestINV04AClientSentRequestCannotReachAnActuatorUngated$|^TestClientsCannotClaimTheKernelsSensors$|^TestAnInterruptDoesNotTouchAnotherSessionOrTheDaemon$"),
		passing("agent", "^TestINV03AProposalThatClaimsApprovalChangesNothing$|^TestAnInterruptStopsItsOwnSessionOnly$"),
		passing("proto", "^TestDecodeFoldsEverySpellingToOneAction$|^TestDecodeRefusesArgumentsThatHideInNestedLists$"),
		passing("sexp", "^TestReadRefusesWithAPosition$"),
	}},
	{2, "malformed frames, dawdlers, 10,000 connects, 1,000 clients", "one error or a clean close; memory flat", []proof{
		passing("proto", "^TestTheSeeds|^TestMalformedFrames|^TestAnAnnouncedLength"),
		passing("daemon", "^TestMalformedFrames|^TestATruncatedFrame|^TestAClientThatDawdles|^TestAThousandClients|^TestTenThousandConnects"),
	}},
	{2, "fuzz targets of reader, frame, decoder and journal", "60 s each, nothing open", []proof{
		fuzzing("sexp", "FuzzReadPrint"), fuzzing("proto", "FuzzFrame"), fuzzing("proto", "FuzzDecodeAction"), fuzzing("journal", "FuzzRecovery"),
	}},
	{2, "kill -9 at 200 random points of 10,000 turns", "journal verifies, no effect without its entry", []proof{
		passing("cmd/passepartout", "^TestCrashAtRandomPoints$", `\d+ turns begun, \d+ acknowledged`).soaking(20 * time.Minute),
	}},
	{2, "frame, 300 B, written and read", "told", []proof{measuring("frames", "proto Frame/encode+decode/300B MB/s", 1, "MB/s", untold)}},
	{2, "frame, 100 KB, written and read", "told", []proof{measuring("frames", "proto Frame/encode+decode/102400B MB/s", 1, "MB/s", untold)}},
	{2, "a decision of 5, 50, 100 gates", "told", []proof{
		measuring("gates", "gate DecideSyntheticGates/5 ns/op", 1e-3, "µs", untold), measuring("gates", "gate DecideSyntheticGates/50 ns/op", 1e-3, "µs", untold), measuring("gates", "gate DecideSyntheticGates/100 ns/op", 1e-3, "µs", untold),
	}},
	{2, "a turn over the socket, reflex engine: p50, p99", "told", []proof{
		measuring("turns", "cmd/passepartout Turn/read p50-µs", 1e-3, "ms", untold), measuring("turns", "cmd/passepartout Turn/read p99-µs", 1e-3, "ms", untold),
	}},
	{2, "cold start to the first reply", "told", []proof{measuring("start", "cmd/passepartout ColdStart ns/op", 1e-6, "ms", untold)}},
	{2, "memory of an idle daemon", "told", []proof{measuring("start", "cmd/passepartout DaemonStart/0 RSS-MB", 1, "MB", untold)}},
}

var orgFiles = []promise{
	{3, "Org files of 31 people, against Emacs's reading", "100 % byte-identical, fields ≥ 99.95 %", []proof{saying(evalOrg, `\d+ files, \d+ headlines: .*`)}},
	{3, "FuzzOrgLossless", "60 s clean", []proof{fuzzing("org", "FuzzOrgLossless")}},
	{3, "edits as Emacs makes them", "≥ 1,000 pairs, 0 failed", []proof{passing("org", "^TestEmacsPerformsTheSameEdits$", `\d+ pairs: [^\n]*`)}},
	{3, "edits touch nothing else and can be undone", "property tests", []proof{passing("org", "^TestEveryEditCanBeUndoneAndTouchesNothingElse$|^TestAnyBytesComeBackAsTheyWere$")}},
	{3, "outline of the files", "≥ 400 MB/s on one core", []proof{measuring("org", "org Outline MB/cpu-s", 1, "MB/s", atLeast(400))}},
	{3, "times faster than Emacs, headlines only (alone; with org-mode)", "≥ 100", []proof{
		measuring("emacs", "org AgainstEmacs times-emacs-parse", 1, "× alone", atLeast(100)), measuring("emacs", "org AgainstEmacs times-emacs-mode+parse", 1, "× with org-mode", untold),
	}},
	{3, "everything of the files", "≥ 60 MB/s", []proof{measuring("org", "org Everything MB/cpu-s", 1, "MB/s", atLeast(60))}},
	{3, "one edit in 10 MB", "≤ 5 ms", []proof{worst("edits", "org Edit/", "cpu-ms/op", 1, "ms", atMost(5))}},
	{3, "allocations for a headline", "told", []proof{measuring("org", "org Outline allocs/headline", 1, "", untold)}},
	{3, "hostile files stay linear", "tests", []proof{passing("org", "^TestHostileFilesCostNoMoreThanTheirLength$|^TestALineOfAHundredMegabytesIsOneLine$")}},
}

var memoryStore = []promise{
	{4, "random edits, outside changes, crashes against a naive model", "0 divergences in 100,000 steps, Merkle verified", []proof{
		{job: job{pkg: "memory", tests: "^TestTheStoreAgreesWithANaiveModel$", env: []string{"PASSEPARTOUT_SOAK=100000", "PASSEPARTOUT_VERIFY=all"}, limit: 20 * time.Minute, long: true}, judge: func(o outcome) (string, verdict) {
			s, v := judgeTests(o, "memory", "^TestTheStoreAgreesWithANaiveModel$", nil)
			if v == met {
				s = "100,000 steps, 0 divergences"
			}
			return s, v
		}},
	}},
	{4, "crash at every point, unsynced writes lost", "whole or absent", []proof{passing("memory", "^TestAfterACrashAtAnyStepEachTransactionIsWholeOrAbsent$")}},
	{4, "8 writers, 64 readers, -race", "nobody waits, nobody sees half", []proof{passing("memory", "^TestReaders").racing()}},
	{4, "first reading, 100k and 1M headlines", "≥ 200,000 headlines/s", []proof{
		measuring("scale", "fovea Scale/100k/scan headlines/s", 1, "/s", atLeast(200_000)), measuring("scale", "fovea Scale/1m/scan headlines/s", 1, "/s", atLeast(200_000)),
	}},
	{4, "warm start, 100k", "≤ 300 ms", []proof{measuring("scale", "fovea Scale/100k/start ns/op", 1e-6, "ms", atMost(300))}},
	{4, "warm start, 1M", "told", []proof{measuring("scale", "fovea Scale/1m/start ns/op", 1e-6, "ms", untold)}},
	{4, "snapshot at any size", "≤ 10 µs", []proof{measuring("scale", "fovea Scale/10k/snapshot ns/op", 1e-3, "µs", atMost(10)), measuring("scale", "fovea Scale/1m/snapshot ns/op", 1e-3, "µs", atMost(10))}},
	{4, "rollback, 100k", "told", []proof{measuring("scale", "fovea Scale/100k/undo ns/op", 1e-6, "ms", untold)}},
	{4, "one edit to visible, 100k", "≤ 10 ms", []proof{measuring("scale", "fovea Scale/100k/edit p50-ms", 1, "ms", atMost(10))}},
	{4, "saving after one edit, 100k", "≤ 50 ms", []proof{measuring("scale", "fovea Scale/100k/save p50-ms", 1, "ms", atMost(50))}},
	{4, "agenda of a week, 100k", "≤ 10 ms", []proof{measuring("scale", "fovea Scale/100k/agenda ns/op", 1e-6, "ms", atMost(10))}},
	{4, "tag query, 100k", "≤ 5 ms", []proof{measuring("scale", "fovea Scale/100k/tag ns/op", 1e-6, "ms", atMost(5))}},
	{4, "the same at 1M: edit, saving, agenda, tag", "told", []proof{
		measuring("scale", "fovea Scale/1m/edit p50-ms", 1, "ms", untold), measuring("scale", "fovea Scale/1m/save p50-ms", 1, "ms", untold),
		measuring("scale", "fovea Scale/1m/agenda ns/op", 1e-6, "ms", untold), measuring("scale", "fovea Scale/1m/tag ns/op", 1e-6, "ms", untold),
	}},
	{4, "memory for a headline beyond the text, 100k and 1M", "≤ 600 B", []proof{
		measuring("scale", "fovea Scale/100k/memory rss-B/headline", 1, "B", atMost(600)), measuring("scale", "fovea Scale/1m/memory rss-B/headline", 1, "B", atMost(600)),
	}},
	{4, "match strings and agenda as Emacs answers", "≥ 200 queries, 0 differ", []proof{
		passing("memory", "^TestMatchStringsAgreeWithEmacs$", `\d+ queries, \d+ differ`).soaking(10 * time.Minute), passing("memory", "^TestTheAgendaAgreesWithEmacs$", `\d+ agendas with \d+ lines, \d+ differ`).soaking(10 * time.Minute),
	}},
	{4, "index gone or rotten, full disk, unreadable file, directory replaced, 5,000 files at once", "correct, said, nothing lost", []proof{
		passing("memory", "^TestTheIndexMayVanish|^TestAnIndexThatVouches|^TestAFullDisk|^TestADirectoryReplaced|^TestAnUnreadableFile|^TestACheckoutOfThousands|^TestADamagedHistory"),
	}},
}

var gateStack = []promise{
	{5, "the shared commands, secrets, actions and injections", "every row of the table holds", []proof{saying(evalGate, `\d+ of \d+ rows hold`, `MISS [^\n]*`)}},
	{5, "published bypasses and CVEs", "each a named test", []proof{passing("gate", "^TestPublished"), passing("shell", "^TestKnownBypassesAreStopped$")}},
	{5, "one decision on a command, all gates: p50", "≤ 50 µs", []proof{measuring("gates", "gate CheckShell p50-ns", 1e-3, "µs", atMost(50))}},
	{5, "the same, p99", "≤ 500 µs", []proof{measuring("gates", "gate CheckShell p99-ns", 1e-3, "µs", atMost(500))}},
	{5, "a hostile command of 64 KiB", "≤ 20 ms", []proof{worst("gates", "gate HostileCommand64KiB/", "ns/op", 1e-6, "ms", atMost(20))}},
	{5, "10,000 rulings decided again in another process", "100 % the same", []proof{passing("gate", "^TestINV07TenThousand", `replayed \d+ rulings`), passing("gate", "^TestOneChangedRuleChangesExactlyItsActions$")}},
	{5, "fuzz: no panic; bash sees no more than we do", "nothing found", []proof{fuzzing("gate", "FuzzDecideNeverPanics"), fuzzing("shell", "FuzzBashSeesNoMoreThanWeDo")}},
	{5, "a gate, a rule or a wrapper never loosens", "metamorphic tests", []proof{
		passing("gate", "^TestAdding|^TestWrappingNeverLoosens$|^TestMoreTaint|^TestANarrowerPolicy"), passing("shell", "^TestWrapping|^TestAddingACommand"),
	}},
}

var actuators = []promise{
	{6, "the escape suite, on both paths", "all contained", []proof{passing("sandbox", "^TestEscape")}},
	{6, "the allowed host through the proxy, and no other", "tests", []proof{passing("sandbox", "^TestTheAllowedHost|^TestANameIsResolvedOnce|^TestTheProxyJudges"), passing("act", "^TestACommandReachesTheHost")}},
	{6, "undoing everything gives the same tree; a crash loses nothing", "property tests", []proof{passing("undo", "^TestUndoingEverything|^TestACrash"), passing("act", "^TestUndoingEverything")}},
	{6, "start of a sandbox by namespaces, above a plain start", "≤ 15 ms", []proof{difference("sandbox", "sandbox Spawn/namespaces ns/op", "sandbox Spawn/plain ns/op", 1e-6, "ms", atMost(15))}},
	{6, "start of a sandbox by bubblewrap, above a plain start", "≤ 15 ms", []proof{difference("sandbox", "sandbox Spawn/bubblewrap ns/op", "sandbox Spawn/plain ns/op", 1e-6, "ms", atMost(15))}},
	{6, "output of a command", "≥ 500 MB/s", []proof{measuring("output", "sandbox Output/namespaces MB/s", 1, "MB/s", atLeast(500)), measuring("output", "sandbox Output/bubblewrap MB/s", 1, "MB/s", atLeast(500))}},
	{6, "a task of several steps; why and undo of each", "end to end", []proof{passing("daemon", "^TestAModelMendsAProgramStepByStep$"), passing("cmd/passepartout", "^TestEachStepOfATask")}},
}

var models = []promise{
	{7, "the wire, read by the providers' own clients", "they decode it", []proof{saying(wireTest), passing("llm", "^TestSSEIsReadHoweverItIsCut$|^TestRequestsAreAsTheProvidersDocumentThem$")}},
	{7, "a real Ollama with a tiny model", "chat, embeddings, context limit", []proof{passing("llm", "^TestARealOllama$")}},
	{7, "12 classes of failure × each backend", "right class, right step, no leak", []proof{passing("llm", "^TestChaos$")}},
	{7, "a cascade whose first provider hangs", "its deadline + 1 s", []proof{passing("llm", "^TestAHangingProviderCostsItsDeadlineOnly$", `answered after [^\n]*`)}},
	{7, "model outputs with goldens", "≥ 300, 0 wrong actions", []proof{passing("agent", "^TestCorpus$|^TestAProposalIsUnderstood|^TestADoubtfulProposal", `\d+ outputs written down, and \d+ made from \d+ forms`)}},
	{7, "a model that lies", "never an effect, ≤ 3 attempts", []proof{passing("daemon", "^TestAModelThatLiesNeverGetsAnEffect$")}},
	{7, "a cap stops the call that would exceed it; an idle hour calls nobody", "0 calls", []proof{passing("llm", "^TestACapStops"), passing("daemon", "^TestACap|^TestINV14AnIdleHour")}},
	{7, "our side of a turn, 10k headings: p50", "≤ 5 ms", []proof{measuring("overhead", "daemon OverheadOfATurn p50-ms", 1, "ms", atMost(5))}},
	{7, "how much of a prompt the provider has seen before", "told", []proof{measuring("overhead", "daemon OverheadOfATurn prefix-%", 1, "%", untold)}},
}
