package flight_test

import (
	"slices"
	"strings"
	"testing"

	"passepartout/internal/gate"
)

func TestWhatIsAgreedToInThreePlacesIsOfferedForWhatTheyShare(t *testing.T) {
	for name, tt := range map[string]struct {
		said  []string
		rule  string // "" for none that is wider than what was said
		fits  []string
		never []string
	}{
		"a program that reads from its service": {
			said: []string{"kubectl get pods", "kubectl describe nodes", "kubectl logs -n web api"},
			rule: "kubectl ...{-n}",
			fits: []string{"kubectl get services", "kubectl get pods -n db", "kubectl logs web"},
			never: []string{
				"kubectl delete pod web", "kubectl exec web -- id", "kubectl get pods -o yaml", "kubectl get pods -s http://evil.example", "kubectl get -n http://evil.example pods",
				"kubectl get pods --server=http://evil.example", "kubectl --kubeconfig=/tmp/evil get pods", "kubectl get secret", "kubectl get pods; id", "kubectl get $(id)", "kubectl get pods >out", "sudo kubectl get pods", "kubectl get -n ../../x pods",
			},
		},
		"one part of such a program": {
			said:  []string{"aws ec2 describe-instances", "aws ec2 describe-vpcs", "aws ec2 describe-images"},
			rule:  "aws ec2 ...{}",
			fits:  []string{"aws ec2 describe-subnets"},
			never: []string{"aws ec2 describe-subnets http://evil.example", "aws iam list-users", "aws ec2 terminate-instances", "aws ec2 describe-vpcs --profile other", "aws --endpoint-url http://evil.example ec2 describe-vpcs"},
		},
		"files in several directories below one": {
			said:  []string{"wc -l /home/bob/site/a/x.html", "wc -l /home/bob/site/b/y.html", "wc -l /home/bob/site/c/z.html"},
			rule:  "wc -l /home/bob/site/*.html",
			fits:  []string{"wc -l /home/bob/site/d/new.html"},
			never: []string{"wc -l /home/bob/site/d/new.txt", "wc -l /home/bob/other/x.html", "wc -l /home/bob/site/../mail/x.html", "cat /home/bob/site/a/x.html", "rm /home/bob/site/a/x.html", "wc -l /home/bob/.ssh/id.html"},
		},
		"directories that share nothing": {
			said: []string{"wc -l /home/bob/x.html", "wc -l /home/eve/y.html", "wc -l /home/dan/z.html"},
		},
		"a question about what is done, not where": {
			said: []string{"touch /srv/site/a/x.html", "touch /srv/site/b/y.html", "touch /srv/site/c/z.html"},
		},
		"packages, which will run": {
			said: []string{"npm install left-pad", "npm update", "npm install right-pad"},
		},
		"too few places": {
			said: []string{"kubectl get pods", "kubectl describe nodes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			for _, cmd := range tt.said {
				if d := l.do(l.run(cmd), true); d != gate.Ask {
					t.Fatalf("%q is %s, so there is nothing to learn", cmd, d)
				}
			}
			var rules []string
			for _, p := range l.mine() {
				if p.Problem != "" {
					continue
				}
				if strings.Contains(p.Rule.When[0].Pattern, "...") && strings.Contains(p.Scope[0], "exactly") {
					t.Errorf("the scope of %q is told as %q", p.Rule.Name, p.Scope[0])
				}
				rules = append(rules, p.Rule.When[0].Pattern)
				l.take(p, false)
			}
			if tt.rule == "" {
				if len(rules) != 0 {
					t.Errorf("the rules %q are proposed, want none", rules)
				}
				return
			}
			if !slices.Contains(rules, tt.rule) {
				t.Fatalf("the rules %q are proposed, want %q", rules, tt.rule)
			}
			for _, cmd := range slices.Concat(tt.said, tt.fits) {
				a := l.run(cmd)
				if r := l.chain.Decide(a, l.facts(a)); r.Decision() != gate.Allow {
					t.Errorf("%q is %s with the rule: %v", cmd, r.Decision(), r.Objections())
				}
			}
			plain := newLife(t)
			for _, cmd := range tt.never {
				a, b := plain.run(cmd), l.run(cmd)
				without, with := plain.chain.Decide(a, plain.facts(a)).Decision(), l.chain.Decide(b, l.facts(b)).Decision()
				if without == gate.Allow || with > without {
					t.Errorf("%q is %s without the rule and %s with it", cmd, without, with)
				}
			}
		})
	}
}

func TestARuleThatLetsOptionsFollowAnswersOneQuestionOnly(t *testing.T) {
	l := newLife(t)
	l.policy.Rules = []gate.Rule{{
		Name: "too wide", Decision: gate.Allow, Verb: "shell.run", When: []gate.Condition{{Arg: "CMD", Pattern: "find ...{-exec}"}},
		Lifts: []string{"shell.exec"}, Match: []string{"find ."}, NoMatch: []string{"id"}, Where: "rules.org:1",
	}}
	if _, err := gate.Standard(l.policy, l.v); err == nil {
		t.Error("the rule loads")
	}
}
