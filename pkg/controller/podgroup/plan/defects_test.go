// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"
)

// changed returns a decision on pods that are not as they are.
func changed(change func(*Pod)) func(Observed) Plan {
	return func(o Observed) Plan {
		var all []*Pod
		for _, p := range o.Pods {
			copied := *p
			change(&copied)
			all = append(all, &copied)
		}
		o.Pods = all
		return Decide(o)
	}
}

// TestRulesFindDefects plays histories with deliberate defects. Each must break a rule.
func TestRulesFindDefects(t *testing.T) {
	for name, defect := range map[string]func(Observed) Plan{
		"pods that are being deleted count": changed(func(p *Pod) { p.Terminating = false }),
		"failed pods count as running": changed(func(p *Pod) {
			if p.Phase == Failed {
				p.Phase = Succeeded
			}
		}),
		"succeeded pods do not count": changed(func(p *Pod) {
			if p.Phase == Succeeded {
				p.Phase = Failed
			}
		}),
		"pods that wait count as running": changed(func(p *Pod) {
			if p.Phase == Pending {
				p.Phase = Running
			}
		}),
		"labels are not seen":               changed(func(p *Pod) { p.Labeled = false }),
		"sizes that pods state are ignored": changed(func(p *Pod) { p.SizeLabel = "" }),
		"owners count as gone": func(o Observed) Plan {
			if o.Owners != nil {
				o.Owners = map[Owner]OwnerSize{job: {Unknown: true}}
			}
			return Decide(o)
		},
		"minMember is ignored": func(o Observed) Plan {
			o.Group = nil
			return Decide(o)
		},
		"no window": func(o Observed) Plan {
			o.LastNew = time.Time{}
			return Decide(o)
		},
		"one pod is left out": func(o Observed) Plan {
			p := Decide(o)
			if len(p.Label) > 1 {
				p.Label = p.Label[1:]
			}
			return p
		},
		"only the first readiness counts": func(o Observed) Plan {
			p := Decide(o)
			if p.Labeled > 0 {
				p.Label = nil
			}
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken := play(defect)
			if broken == "" {
				t.Error("no rule is broken")
			}
			t.Log(broken)
		})
	}
}
