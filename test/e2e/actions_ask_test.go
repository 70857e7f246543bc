// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import "github.com/google/go-cmp/cmp"

// prepareAll brings the sets of one state into it.
func (k *kubectl) prepareAll(name string, s state, by *kubectl) {
	k.Helper()
	if s.prepare == nil {
		return
	}
	for action := range actionKinds {
		k.awaitSummary(name+"-"+action, s.before)
		if s.held {
			k.hold("job/" + name + "-" + action + "-workers-0")
		}
	}
	for action := range actionKinds {
		if name == "deleting" { // needs more than the actions
			by = k
		}
		s.prepare(by, name+"-"+action)
	}
}

// ask asks for an action and compares the answer.
func ask(k *kubectl, set, action string, want cell) {
	k.Helper()
	r := k.act(action, set, `"reason":"because"`)
	if want.refused != "" {
		if diff := cmp.Diff(refusal(set, want.refused), r.stderr); diff != "" || r.code == 0 {
			k.Errorf("%s %s: code %d, refusal (-want +got):\n%s", action, set, r.code, diff)
		}
		return
	}
	if diff := cmp.Diff(want.answer, inNamespace.ReplaceAllString(afterAgo.ReplaceAllString(k.answer(r).Message, ""), "")); diff != "" {
		k.Errorf("%s %s: answer (-want +got):\n%s", action, set, diff)
	}
}
