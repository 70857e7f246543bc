// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// waiting is what has to happen to a set for a command to end.
type waiting struct {
	pod, extra string
	// before is the summary at which the command has nothing yet; then comes happens.
	before  string
	happens func(k *kubectl, set string)
}

const (
	running   = "restarts=0 | 1 Start, ready"
	suspended = "suspend restarts=0 Suspended/SuspendedJobs"
)

func actOn(action string) func(*kubectl, string) {
	return func(k *kubectl, set string) { k.answer(k.act(action, set, "")) }
}

// finish lets the pods of a set end.
func finish(outcome string) func(*kubectl, string) {
	return func(k *kubectl, set string) {
		k.ok("annotate", "pods", "--overwrite", "-l", "jobset.sigs.k8s.io/jobset-name="+set,
			"jobset-apiserver.io/kwok-run-seconds=0", "jobset-apiserver.io/kwok-outcome="+outcome)
	}
}

// waits has a case for each row of docs/attempts.md, by what it waits for.
var waits = map[string]waiting{
	"all Jobs were ready once in the current attempt":                      {pod: runOn, extra: "suspend: true", before: suspended, happens: actOn("resume")},
	"two Jobs of one replicatedJob are ready":                              {pod: runOn, extra: "suspend: true", before: suspended, happens: actOn("resume")},
	"the set has finished, well or not":                                    {pod: runOn, before: running, happens: finish("succeeded")},
	"it has completed":                                                     {pod: runOn, before: running, happens: finish("succeeded")},
	"it has failed or was cancelled":                                       {pod: runOn, before: running, happens: finish("failed")},
	"it was cancelled":                                                     {pod: runOn, before: running, happens: actOn("cancel")},
	"the second attempt has begun":                                         {pod: runOn, before: running, happens: actOn("restart")},
	"the second attempt is ready":                                          {pod: runOn, before: running, happens: actOn("restart")},
	"the first attempt is over":                                            {pod: runOn, before: running, happens: actOn("suspend")},
	"a restart is over: all Jobs are ready again, or the set has finished": {pod: runOn, before: running, happens: actOn("restart")},
	"it is suspended":                                                      {pod: runOn, before: running, happens: actOn("suspend")},
	"it is resumed":                                                        {pod: runOn, extra: "suspend: true", before: suspended, happens: actOn("resume")},
	"it is gone": {pod: runOn, before: running, happens: func(k *kubectl, set string) {
		k.ok("delete", "jobset", set, "--wait=false")
	}},
}

var waitRow = regexp.MustCompile("(?m)^\\| (.+?) \\| `kubectl (wait jobset/train --for=.+)` \\|$")

// TestCommandsThatWait runs each command of the documentation: it does not end before what it waits for, and then it does.
func TestCommandsThatWait(t *testing.T) {
	tier.OnRequest(t, "waits in real time")
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(shared.Root, "docs", "attempts.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string][]string{}
	for _, row := range waitRow.FindAllStringSubmatch(string(content), -1) {
		commands[row[1]] = strings.Fields(strings.ReplaceAll(row[2], "'", ""))
	}
	if len(commands) == 0 {
		t.Fatal("docs/attempts.md has no commands that wait")
	}
	k := newKubectl(t)
	for until := range commands {
		if _, known := waits[until]; !known {
			t.Errorf("docs/attempts.md: no case waits until %s", until)
		}
	}
	for until, w := range waits {
		t.Run(until, func(t *testing.T) {
			k := *k
			k.T = t
			command, documented := commands[until]
			if !documented {
				t.Fatal("docs/attempts.md does not say how to wait for it")
			}
			var extra []string
			if w.extra != "" {
				extra = append(extra, w.extra)
			}
			set := "set-" + regexp.MustCompile("[^a-z]+").ReplaceAllString(strings.ToLower(until), "-")
			set = strings.Trim(set[:min(len(set), 30)], "-")
			k.okIn(manifest(set, w.pod, extra...), "create", "-f", "-")
			k.awaitSummary(set, w.before)
			command[1] = "jobset/" + set
			if r := k.run("", append(command, "--timeout=0")...); r.code == 0 {
				t.Errorf("kubectl %s: ends although nothing happened: %s", strings.Join(command, " "), r.stdout)
			}
			ended := make(chan result, 1)
			go func() { ended <- k.run("", append(command, "--timeout=5m")...) }()
			w.happens(&k, set)
			if r := <-ended; r.code != 0 {
				t.Errorf("kubectl %s: %s", strings.Join(command, " "), r.stderr)
			}
		})
	}
}
