// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

func job(replicatedJob string, index int, start float64, end float64, how batchv1.JobConditionType) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("train-%s-%d", replicatedJob, index), Labels: map[string]string{jobsetv1alpha2.ReplicatedJobNameKey: replicatedJob},
	}}
	j.Status.StartTime = ptr.To(metav1.NewTime(after(start)))
	if how != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(after(end))}}
	}
	return j
}

func TestText(t *testing.T) {
	long := Build(eventful(), after(12000))
	withJobs := Build(newSet(withAttempts(started(1, 0, 2, 5, 0, ""))), after(100))
	withJobs.Jobs = Lanes([]*batchv1.Job{
		job("leader", 0, 2, 0, ""), job("workers", 0, 4, 60, batchv1.JobComplete), job("workers", 1, 4, 90, batchv1.JobFailed),
	}, withJobs.Attempts, after(100))
	other := Build(newSet(func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Active: 1, Ready: 1}}
	}), after(100))
	other.Jobs = Lanes([]*batchv1.Job{job("workers", 0, 10, 0, "")}, nil, after(100))
	withoutHistory(other, newSet())
	for name, tc := range map[string]struct {
		timeline *Timeline
		screen   screen
		golden   string
	}{
		"on a terminal of usual width":       {timeline: long, screen: screen{Terminal: cli.Terminal{Width: 100}}, golden: "eventful-100.txt"},
		"on a narrow terminal without UTF-8": {timeline: long, screen: screen{Terminal: cli.Terminal{Width: 60, ASCII: true}}, golden: "eventful-60-ascii.txt"},
		"in a file nothing is cut":           {timeline: long, golden: "eventful-file.txt"},
		"with colors":                        {timeline: long, screen: screen{Terminal: cli.Terminal{Width: 80, Colors: true}}, golden: "eventful-80-colors.txt"},
		"with the Jobs":                      {timeline: withJobs, screen: screen{Terminal: cli.Terminal{Width: 80}}, golden: "jobs-80.txt"},
		"of a server without history":        {timeline: other, screen: screen{Terminal: cli.Terminal{Width: 80}}, golden: "without-history-80.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.screen.zone = time.UTC
			golden.Compare(t, tc.golden, text(tc.timeline, tc.screen))
		})
	}
}

var paint = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestNoLineIsLongerThanTheTerminal(t *testing.T) {
	set := eventful()
	set.Status.Attempts[1].Rule = strings.Repeat("rule", 50)
	set.Status.Attempts[2].User = "\x1b[2J" + strings.Repeat("user", 50)
	set.Status.Attempts[3].Reason = "\x1b[31m" + strings.Repeat("reason\n", 100)
	for width := 24; width < 200; width += 7 {
		for name, s := range map[string]screen{
			"plain": {Terminal: cli.Terminal{Width: width, ASCII: true}, zone: time.UTC},
			"paint": {Terminal: cli.Terminal{Width: width, Colors: true}, zone: time.UTC},
		} {
			for _, line := range strings.Split(text(Build(set, after(12000)), s), "\n") {
				line = paint.ReplaceAllString(line, "")
				if got := utf8.RuneCountInString(line); got > width {
					t.Errorf("%s at width %d: a line has %d columns: %s", name, width, got, line)
				}
				if strings.ContainsRune(line, '\x1b') {
					t.Errorf("%s at width %d: what a user wrote reaches the terminal as it is: %q", name, width, line)
				}
				if s.ASCII && strings.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) {
					t.Errorf("%s at width %d: not all of ASCII: %s", name, width, line)
				}
			}
		}
	}
}

func TestManyJobsAreShownByReplicatedJob(t *testing.T) {
	jobs := []*batchv1.Job{job("leader", 0, 1, 0, "")}
	for i := range 2000 {
		how := batchv1.JobConditionType("")
		if i%4 == 0 {
			how = batchv1.JobComplete
		}
		jobs = append(jobs, job("workers", i, 2+float64(i%5), 50, how))
	}
	want := []Lane{
		{Name: "leader", ReplicatedJob: "leader", Count: 1, State: "Running", Begin: after(1), End: after(100), Open: true},
		{Name: "workers", ReplicatedJob: "workers", Count: 2000, State: "1500 Running, 500 Complete", Begin: after(2), End: after(100), Open: true},
	}
	if diff := cmp.Diff(want, Lanes(jobs, nil, after(100))); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
}

func TestTicks(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	for name, tc := range map[string]struct {
		begin, end time.Time
		zone       *time.Location
		most       int
		want       []string
	}{
		"seconds":                    {begin: after(1), end: after(8), zone: time.UTC, most: 5, want: []string{"12:00:02", "12:00:04", "12:00:06", "12:00:08"}},
		"minutes":                    {begin: after(30), end: after(3000), zone: time.UTC, most: 6, want: []string{"12:10", "12:20", "12:30", "12:40", "12:50"}},
		"round hours of the zone":    {begin: after(0), end: after(6 * 3600), zone: berlin, most: 4, want: []string{"14:00", "16:00", "18:00"}},
		"the date where it changes":  {begin: after(9 * 3600), end: after(15 * 3600), zone: time.UTC, most: 4, want: []string{"Mar 9 22:00", "Mar 10 00:00", "Mar 10 02:00"}},
		"days begin at midnight":     {begin: after(0), end: after(3 * 86400), zone: time.UTC, most: 4, want: []string{"Mar 10", "Mar 11", "Mar 12"}},
		"a year has not 365 of them": {begin: after(0), end: after(365 * 86400), zone: time.UTC, most: 6, want: []string{"Jun 8", "Sep 7", "Dec 7", "Mar 8"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, tick := range ticks(tc.begin, tc.end, tc.most, tc.zone) {
				got = append(got, tick.label)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}
