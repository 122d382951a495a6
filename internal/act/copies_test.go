package act_test

import (
	"testing"

	"passepartout/internal/act"
)

func TestTheNoteAFileIsACopyOfIsToldFromItsName(t *testing.T) {
	for name, want := range map[string]string{
		"a/diary.org": "", "a/diary.txt": "", "diary.org_archive": "diary.org", "a/#diary.org#": "a/diary.org",
		"a/.diary.org.swp": "a/diary.org", "a/.diary.org.swo": "a/diary.org", "diary.org~": "diary.org", "diary.org.~12~": "diary.org",
		"diary.org.bak": "diary.org", ".diary.org.un~": "diary.org", "x.organ": "x.org", "": "", "#": "", ".org": "", "a/.b": "",
	} {
		if got := act.Original(name); got != want {
			t.Errorf("%s is a copy of %q, want %q", name, got, want)
		}
	}
}

func TestOnlyPlainCommandsOfGitPrintNothingOfItsStore(t *testing.T) {
	for _, quiet := range []string{
		"git status", "git add -A && git commit -m 'a day; two notes' && git push", "cd notes && git pull --rebase",
		"git log --oneline -5", "git commit -am \"x\"", "git rm old.org || git status",
	} {
		if act.Prints(quiet) {
			t.Errorf("%s is said to print", quiet)
		}
	}
	for _, loud := range []string{
		"git show HEAD:diary.org", "git log -p", "git log --patch", "git log --pat", "git log -5p", "git log -Lx:1:f", "git log --format=%B", "git log -c", "git log --dd", "git log --binary", "git log --patch-with-stat", "git log -U3", "git log --color-words", "git log -m -p", "git status -vv", "git push --verbose", "git log --pretty=raw",
		"git commit -v", "git diff", "git cat-file -p HEAD", "git status | cat", "git status > f", "git grep x HEAD", "git $X", "git `x`",
		"x=1 git status", "git", "cat .git/objects/x", "git add -p", "git status & cat x", "! git status", "(git show)", "git archive HEAD", "git checkout -p",
		"git -c alias.x=show x", "git --git-dir=x status", "git stash show -p", "if git status; then git show; fi", "git status; git show", "git rebase -i x", "git )",
	} {
		if !act.Prints(loud) {
			t.Errorf("%s is said to print nothing", loud)
		}
	}
}
