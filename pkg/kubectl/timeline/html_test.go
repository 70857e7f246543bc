// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

func page(t *testing.T, tl *Timeline) string {
	t.Helper()
	var b bytes.Buffer
	if err := Page(&b, tl, time.UTC); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageAndChartAgree(t *testing.T) {
	got := page(t, Build(eventful(), after(12000)))
	for _, want := range []string{
		"<title>Timeline of jobset team-a/train</title>",
		"Running, 4 attempts in 3h20m", "all Jobs ready 72% of the time",
		// A bar is where its times are: 1080 to 4500 of 12000 seconds.
		`<rect class="bar running" x="9.000%" y="106" width="28.500%" height="18"><title>attempt 1: running, 57m (2026-03-09 12:18:00 to 2026-03-09 13:15:00)</title></rect>`,
		`attempt 4: running, 48m (2026-03-09 14:32:00 to now)`,
		"suspended, 30m (2026-03-09 13:50:00 to 2026-03-09 14:20:00)",
		"FailurePolicy rule hosts", "Requested by bob, Job workers/3", "stuck in a collective",
		"pod train-workers-3-1-x7k2p on node node-017: container main, exit code 137, signal 9, OOMKilled",
		"<b>Ended by</b> alice: maintenance of rack 4",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}

func TestPageNeedsNoNetworkAndNoScript(t *testing.T) {
	got := page(t, Build(eventful(), after(12000)))
	if found := regexp.MustCompile(`(?i)<script|<link rel="stylesheet|@import|url\(|(src|href)="[^"d]|\son[a-z]+="`).FindString(got); found != "" {
		t.Errorf("the page has %q", found)
	}
	if !strings.Contains(got, `content="default-src 'none'`) {
		t.Error("the page does not forbid itself to load anything")
	}
}

func TestPageEscapesWhatUsersWrote(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	set := eventful()
	set.Name = "train" + evil
	for i := range set.Status.Attempts {
		a := &set.Status.Attempts[i]
		a.User, a.Reason, a.EndUser, a.EndReason, a.Rule = evil, evil, evil, evil, evil
		a.ReplicatedJob = evil
	}
	cause := set.Status.Attempts[0].FirstCause
	cause.Job, cause.Pod, cause.Node, cause.Container, cause.Reason, cause.Message = evil, evil, evil, evil, evil, evil
	got := page(t, Build(set, after(12000)))
	for _, bad := range []string{"<script", "<img"} {
		if strings.Contains(got, bad) {
			t.Errorf("the page contains %s as markup", bad)
		}
	}
	if !strings.Contains(got, "&lt;script&gt;alert(1)") {
		t.Error("what the users wrote is missing")
	}
}

func TestShortPhasesAreVisible(t *testing.T) {
	got := page(t, Build(newSet(withAttempts(started(1, 0, 1, 2, 0, ""))), after(86400)))
	if want := `class="bar creating" x="0.000%" y="56" width="0.400%"`; !strings.Contains(got, want) {
		t.Errorf("the page does not contain %q", want)
	}
}

// TestFailedJobs has a Job that failed, and that began in the second in which its attempt did.
func TestFailedJobs(t *testing.T) {
	tl := Build(newSet(withAttempts(started(1, 0.5, 2, 5, 0, ""))), after(100))
	tl.Jobs = Lanes([]*batchv1.Job{job("workers", 0, 0, 60, batchv1.JobFailed)}, tl.Attempts, after(100))
	got := page(t, tl)
	if want := `<title>train-workers-0: failed, 59s (2026-03-09 12:00:00 to 2026-03-09 12:01:00)</title>`; !strings.Contains(got, want) {
		t.Errorf("the page does not contain %q", want)
	}
	if !strings.Contains(got, `<rect class="bar failed" x="0.500%"`) {
		t.Errorf("the failed Job is not drawn as one:\n%s", got)
	}
	if begin := tl.Jobs[0].Begin; begin.Before(tl.Attempts[0].RequestTime.Time) {
		t.Errorf("the Job begins at %v, before its attempt at %v", begin, tl.Attempts[0].RequestTime)
	}
}
