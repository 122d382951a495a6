package main

import "time"

// recallSet is the shared evaluation in one mode.
func recallSet(mode string) proof {
	j := eval("recall", "--mode", mode)
	j.long = true
	return saying(j, `([\w-]+) +\w+ +(nDCG@10 +[\d.]+)  (R@100 +[\d.]+)`)
}

var recallAndContext = []promise{
	{8, "trigrams as the seeds had them", "told", []proof{recallSet("hashing")}},
	{8, "words alone", "told", []proof{recallSet("lexical")}},
	{8, "the embedded default alone", "told", []proof{recallSet("vector")}},
	{8, "the fusion; Cranfield", "nDCG@10 ≥ 41", []proof{counting(recallSet("fused"), `cranfield +\w+ +nDCG@10 +([\d.]+)`, "on Cranfield", atLeast(41)), recallSet("fused")}},
	{8, "a provider's vectors never make it worse than words alone", "tests", []proof{passing("recall", "^TestSoakNoProviderMakesSearchWorseThanWordsAlone$", `\S+ +\S+ +vectors alone +[\d.]+, fused +[\d.]+`).soaking(15 * time.Minute)}},
	{8, "ranks of ≥ 50 questions to personal notes", "as in the golden", []proof{passing("fovea", "^TestNotesAreFoundAtTheRankTheyWere$")}},
	{8, "500 random foci in memexes of 1k to 1M", "within the budget, whole, the same twice", []proof{passing("fovea", "^TestContextStaysWithinItsBudget"), passing("fovea", "^TestSoakContextAtScale$", `\d+ headings: a context takes [^\n]*`).with("PASSEPARTOUT_SCALE=1M").soaking(15 * time.Minute)}},
	{8, "context at 100k: p99", "≤ 20 ms", []proof{measuring("scale", "fovea Scale/100k/context-focus p99-ms", 1, "ms", atMost(20))}},
	{8, "context at 1M: p99", "≤ 50 ms", []proof{measuring("scale", "fovea Scale/1m/context-focus p99-ms", 1, "ms", atMost(50))}},
	{8, "question at 100k: p99", "≤ 10 ms", []proof{measuring("search", "recall Search/100000/fused p99-ms", 1, "ms", atMost(10))}},
	{8, "question at 1M: p99", "≤ 40 ms", []proof{measuring("search", "recall Search/1000000/fused p99-ms", 1, "ms", atMost(40))}},
	{8, "building the index", "≥ 50,000 headings/s", []proof{measuring("search", "recall Build/100000 notes/s", 1, "/s", atLeast(50_000)), measuring("scale", "fovea Scale/100k/index headlines/s", 1, "/s through the mirror", untold)}},
	{8, "following one change", "≤ 5 ms", []proof{measuring("search", "recall Update/1000000 ns/op", 1e-6, "ms", atMost(5))}},
	{8, "bytes for a heading", "told", []proof{measuring("search", "recall Update/100000 B/note", 1, "B", untold)}},
	{8, "scan of vectors against memory's own speed", "≤ 2 ×", []proof{worst("search", "recall Scan/", "times-memory", 1, "×", atMost(2))}},
	{8, "a needle at depth 7, paraphrased question", "≥ 90 % of 200", []proof{counting(passing("fovea", "^TestANeedleIsInTheContext$"), `(\d+) of 200 needles`, "of 200", atLeast(180))}},
	{8, "1,000 private canaries", "in no context, request or log", []proof{passing("fovea", "^TestNoPrivateNote"), passing("recall", "^TestNoPrivateNote"), passing("daemon", "^TestINV12NoPrivateNote")}},
}

var approvals = []promise{
	{9, "kill -9 at every step of an approval", "once or not at all, and told", []proof{passing("daemon", "^TestINV09CrashMatrix")}},
	{9, "64 answers at once", "one effect", []proof{passing("daemon", "^TestINV09OfSixtyFour"), passing("flight", "^TestOfSixtyFour")}},
	{9, "a script swapped while its plan waits; clocks that are set", "refused with the reason; expiry holds", []proof{passing("daemon", "^TestINV09AScriptSwapped"), passing("flight", "^TestINV09AScriptSwapped|^TestExpiryHolds|^TestAClockSetBack")}},
	{9, "forged approvals", "none approves", []proof{passing("daemon", "^TestINV09NothingBut"), passing("agent", "^TestINV09NothingBut"), passing("channel", "^TestNothingHappensFor$")}},
	{9, "prompts per 100 actions after a week", "≤ 5", []proof{counting(passing("flight", "^TestAMonthOfUse").soaking(15*time.Minute), `after a week: median ([\d.]+) prompts per 100`, "", atMost(5))}},
	{9, "dangerous rows admitted by learnt rules; rulings replay", "0; 100 %", []proof{passing("flight", "^TestAMonthOfUse", `\d+ of \d+ dangerous commands admitted by a learnt rule; \d+ of \d+ rulings replay the same`).soaking(15 * time.Minute)}},
	{9, "from a yes to the effect: p99", "≤ 50 ms", []proof{measuring("approvals", "daemon ApproveToEffect p99-ms", 1, "ms", atMost(50))}},
	{9, "10,000 open plans listed over the socket", "≤ 100 ms", []proof{measuring("approvals", "daemon Approvals10k ns/op", 1e-6, "ms", atMost(100))}},
}

var skills = []promise{
	{10, "forms answer as in SBCL; data prints as in SBCL", "≥ 2,000 forms", []proof{passing("lisp", "^TestFormsAnswerAsInSBCL$"), passing("lisp", "^TestRandomDataPrintsAsInSBCL$")}},
	{10, "the ancestor's skill files give their verdicts", "as SBCL gives them", []proof{passing("skill", "^TestTheAncestors")}},
	{10, "the jail", "stopped within the budget", []proof{passing("lisp", "^TestJail|^TestReaderBombs|^TestMemoryIsBounded"), passing("skill", "^TestHostileSkills|^TestSkillsHaveNoHostPowers"), passing("daemon", "^TestHostileSkills", `\d+ turns alone: [^\n]*`)}},
	{10, "1,000 turns while a skill is saved 100 times", "no mix, no failed turn", []proof{passing("daemon", "^TestTurnsGoOnWhileASkillIsSaved$", `\d+ turns while [^\n]*`), passing("skill", "^TestReloadUnderLoad$")}},
	{10, "speed beside SBCL, interpreted and compiled", "faster than interpreted on every row", []proof{besting(passing("lisp", "^TestSpeedBesideSBCL$").with("PASSEPARTOUT_SPEED=1"), `bench_test.go:\d+: (\S.*?) {2,}([\d.]+) {2,}([\d.]+) {2,}[\d.]+\n`)}},
	{10, "a typical Lisp gate", "≤ 20 µs", []proof{measuring("skills", "skill Gate/policy ns/op", 1e-3, "µs policy", atMost(20)), measuring("skills", "skill Gate/bouncer ns/op", 1e-3, "µs bouncer", untold)}},
}

var background = []promise{
	{11, "repeaters as in Emacs", "≥ 500 timestamps", []proof{passing("org", "^TestDoneTasksMoveOnAsInEmacs$|^TestRepetitionsFallOnTheDaysEmacsShows$", `\d+ timestamps, \d+ differ`)}},
	{11, "due times as in another cron", "≥ 500 expressions × clock changes in 6 zones", []proof{passing("cron", "^TestDueTimesAgree", `\d+ expressions, \d+ zones, [^\n]*`)}},
	{11, "due times while the daemon was off or killed", "exactly the truth", []proof{passing("pulse", "^TestDueTimesWhile|^TestARunThatACrash|^TestRunsThatWait|^TestEveryDueTime"), passing("cmd/passepartout", "^TestEverySecondIsAccountedFor")}},
	{11, "10,000 jobs", "idle CPU < 0.5 %, start ≤ 1 s", []proof{passing("pulse", "^TestTenThousandJobs$", `\d+ jobs: started in [^\n]*`).soaking(10 * time.Minute), measuring("schedule", "pulse Start ns/op", 1e-6, "ms", atMost(1000))}},
	{11, "24 hours with heartbeat and with 20 jobs", "0 calls; only where predicates fired", []proof{passing("pulse", "^TestADayOfIdling", `24 hours, [^\n]*`, `20 jobs, [^\n]*`), passing("daemon", "^TestINV14ADay|^TestINV14AModelHears", `24 hours of heartbeats: [^\n]*`)}},
	{11, "scribe over 365 days", "second run 0, links lead to days, nothing private", []proof{passing("scribe", "^TestAYear", `365 days: [^\n]*`)}},
	{11, "gardener", "all planted defects, repairs leave none", []proof{passing("gardener", "^TestPlantedDefects", `\d+ defects of [^\n]*`)}},
	{11, "hooks that loop, fail or hang", "never block a turn", []proof{passing("pulse", "^TestHooks|^TestALoop|^TestAHook"), passing("daemon", "^TestAHook")}},
}

var terminal = []promise{
	{12, "every flow by keys in a real terminal; goldens", "tests", []proof{passing("cmd/passepartout", "^TestTheTerminalClient|^TestPictures$|^TestARunningCommand"), passing("tui", "^Test")}},
	{12, "the newcomer's scripts on the real binary", "tests", []proof{passing("cmd/passepartout", "^TestScripts$")}},
	{12, "frames a second at 1,000 tokens/s, and through 100,000 lines", "≥ 30", []proof{measuring("terminal", "cmd/passepartout TerminalClient stream-frames/s", 1, "/s streaming", atLeast(30)), measuring("terminal", "cmd/passepartout TerminalClient scroll-frames/s", 1, "/s scrolling", atLeast(30))}},
	{12, "first paint", "≤ 100 ms", []proof{measuring("terminal", "cmd/passepartout TerminalClient first-paint-ms", 1, "ms", atMost(100))}},
	{12, "memory of the client", "≤ 40 MB", []proof{measuring("terminal", "cmd/passepartout TerminalClient RSS-MB", 1, "MB", atMost(40))}},
	{12, "doctor: ≥ 20 planted faults", "found, and mended where it says so", []proof{passing("cmd/passepartout", "^TestDoctorFinds")}},
	{12, "backup, wipe, restore; hostile archives", "the same trees; nothing written", []proof{passing("backup", "^Test")}},
	{12, "odd terminals, no colour, no UTF-8, full disk", "no crash, no lost input", []proof{passing("cmd/passepartout", "^TestTheTerminalClientFits|^TestTheTerminalClientNeeds|^TestTheTerminalClientLosesNothing|^TestAFullDisk")}},
}

var elsewhere = []promise{
	{13, "the Emacs client, in batch and in a terminal", "suite passes", []proof{passing("cmd/passepartout", "Emacs")}},
	{13, "Telegram and Signal over bad networks and restarts", "each message once, each reply once", []proof{passing("channel", "^TestEveryMessage|^TestEveryReply|^TestAQuestionIsAnsweredOnce|^TestSignal", `died at \d+ steps`), passing("daemon", "^TestARealDaemonKilledAtAnyStepAnswersTelegramOnce$")}},
	{13, "strangers, forwarded approvals, others' buttons", "nothing happens, journaled", []proof{passing("channel", "^TestNothingHappensFor$|^TestForwarded|^TestSignalStrangers|^TestAPairingCode"), passing("daemon", "^TestAStrangerOnTelegram")}},
	{13, "ACP: the SDK's own example client", "a whole session with a permission", []proof{passing("cmd/passepartout", "ACP$|^TestTheSDKs")}},
	{13, "one conversation over terminal, Emacs, Telegram", "one session, one question", []proof{passing("cmd/passepartout", "^TestOneConversationGoesFromTheTerminalToEmacsToTelegram$"), passing("daemon", "^TestOneConversation")}},
}
