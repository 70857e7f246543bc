// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestPluginEventsOfSetJobsAndPods(t *testing.T) {
	tier.OnRequest(t, "waits for events")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn)+"---\n"+manifest("other", runOn), "apply", "-f", "-")
	k.eventually(func() string {
		got := k.pluginOK("events", "js/train", "-o", "jsonpath={range .items[*]}{.object} {.reason}{'\\n'}{end}")
		for _, want := range []string{"Job/train-workers-0 SuccessfulCreate", "Pod/train-workers-0-0-"} {
			if !strings.Contains(got, want) {
				return fmt.Sprintf("%q is missing in:\n%s", want, got)
			}
		}
		if strings.Contains(got, "other") {
			return "events of another set:\n" + got
		}
		return ""
	})
	watch := k.follow("events", "train", "-w")
	k.eventually(func() string {
		if !strings.Contains(watch.String(), "LAST SEEN") {
			return "nothing is listed yet: " + watch.String()
		}
		return ""
	})
	k.pluginOK("restart", "train", "--reason", "see its event")
	k.eventually(func() string {
		if got := watch.String(); !strings.Contains(got, "RestartRequested") || strings.Count(got, "LAST SEEN") != 1 {
			return "the restart is not among the events:\n" + got
		}
		return ""
	})
	if got := k.pluginOK("events", "train", "--types=warning"); strings.Contains(got, "Normal") {
		t.Errorf("warnings alone:\n%s", got)
	}
	if r := k.plugin("events", "nothing"); r.code != 1 || !strings.Contains(r.stderr, `"nothing" not found`) {
		t.Errorf("no such set: exit code %d, %q", r.code, r.stderr)
	}
}
