// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// timelineData is what a script reads of `timeline -o json`.
type timelineData struct {
	State      string
	Begin, End time.Time
	Finished   bool
	ReadyShare float64
	Attempts   []struct {
		Number                             int
		Trigger, Outcome                   string
		User, Reason, EndUser, EndReason   string
		Seconds, SecondsToReady            float64
		Recovers                           bool
		FirstCause                         *struct{ Pod, Node string }
		RequestTime, ReadyTime, CreateTime time.Time
	}
	Phases []struct {
		Kind       string
		Attempt    int
		Begin, End time.Time
		Seconds    float64
		Open       bool
	}
}

func (k *kubectl) timeline() timelineData {
	k.Helper()
	var data timelineData
	if err := json.Unmarshal([]byte(k.pluginOK("timeline", "train", "-o", "json")), &data); err != nil {
		k.Fatal(err)
	}
	return data
}

// lasts waits until the newest phase is of that kind and has lasted for a while.
func (k *kubectl) lasts(kind string, attempts int, seconds float64) {
	k.Helper()
	k.eventually(func() string {
		data := k.timeline()
		last := data.Phases[len(data.Phases)-1]
		if len(data.Attempts) != attempts || last.Kind != kind || last.Seconds < seconds {
			return fmt.Sprintf("%d attempts, %s for %.1fs", len(data.Attempts), last.Kind, last.Seconds)
		}
		return ""
	})
}

// The reasons that users give are text, whatever they look like.
const (
	oddReason = `<script>alert("stuck")</script> & <b>slow</b>`
	endReason = "not needed any more"
)

// liveThrough gives a set a life with everything in it: a restart on request, a suspension, a failure, and its end by a user.
func liveThrough(k *kubectl) timelineData {
	k.Helper()
	k.okIn(manifest("train", runOn, "failurePolicy: {maxRestarts: 3}"), "apply", "-f", "-")
	k.lasts("running", 1, 1)
	k.pluginOK("restart", "train", "--reason", oddReason)
	k.lasts("running", 2, 1)
	k.pluginOK("suspend", "train", "--reason", "maintenance")
	k.lasts("suspended", 2, 2)
	k.pluginOK("resume", "train", "--reason", "done")
	k.lasts("running", 3, 1)
	pod := k.ok("get", "pods", "-l", "jobset.sigs.k8s.io/job-index=1", "--field-selector=status.phase=Running", "-o", "name")
	k.ok("annotate", strings.TrimSpace(pod), "--overwrite", "jobset-apiserver.io/kwok-outcome=failed", "jobset-apiserver.io/kwok-run-seconds=0")
	k.lasts("running", 4, 1)
	k.pluginOK("cancel", "train", "--reason", endReason)
	k.wait("--for=condition=Failed", "jobset/train")
	return k.timeline()
}

func TestPluginDrawsTimeline(t *testing.T) {
	tier.OnRequest(t, "needs a browser")
	t.Parallel()
	k := newKubectl(t)
	data := liveThrough(k)

	type attempt struct{ Trigger, Outcome, Reason, EndReason string }
	var attempts []attempt
	for _, a := range data.Attempts {
		// The words of the controller are its own.
		if a.Trigger == "FailurePolicy" {
			a.Reason = ""
		}
		if a.FirstCause != nil {
			a.EndReason = "failure on " + a.FirstCause.Node[:5]
		}
		attempts = append(attempts, attempt{a.Trigger, a.Outcome, a.Reason, a.EndReason})
	}
	if diff := cmp.Diff([]attempt{
		{"Start", "Restarted", "", oddReason},
		{"Requested", "Suspended", oddReason, "maintenance"},
		{"Resume", "Restarted", "done", "failure on node-"},
		{"FailurePolicy", "Cancelled", "", endReason},
	}, attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if data.State != "Failed" || !data.Finished || data.ReadyShare <= 0 || data.ReadyShare >= 1 {
		t.Errorf("state %s, finished %t, share %v", data.State, data.Finished, data.ReadyShare)
	}
	for i, phase := range data.Phases {
		if i > 0 && phase.Begin.Before(data.Phases[i-1].End) {
			t.Errorf("phase %d begins at %v, before the end of the one before", i, phase.Begin)
		}
	}

	k.env = []string{"LC_ALL=C.UTF-8"}
	text := k.pluginOK("timeline", "train")
	for _, want := range []string{
		"/train: Failed (Cancelled), 4 attempts in", "╌ suspended", "█", "■ cancelled", "Requested by kwok-admin", "ended by kwok-admin: " + endReason,
		"first cause: pod " + data.Attempts[2].FirstCause.Pod + " on node " + data.Attempts[2].FirstCause.Node + ": container main, exit code 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	k.env = []string{"LC_ALL=C"}
	if plain := k.pluginOK("timeline", "train"); strings.ContainsFunc(plain, func(r rune) bool { return r > 127 }) {
		t.Errorf("a locale without UTF-8 gets\n%s", plain)
	}
	checkPage(k, data)
}

// bar is what the browser says of one phase: where it is in the window, and where in the drawing.
type bar struct {
	X, Y, Width, Height   float64
	Kind, Title           string
	DrawingX, DrawingWide float64
}

// layout is where the browser puts what is in the page.
type layout struct {
	Bars []bar
	// Content is how wide the page is, Window how wide what is seen of it, Right where text and drawing end.
	Content, Window, Right float64
}

const askLayout = `
	const drawing = document.querySelector('svg').getBoundingClientRect()
	const right = [...document.querySelectorAll('h1, p, svg, li, .scroll')].map(e => e.getBoundingClientRect().right)
	const bars = [...document.querySelectorAll('rect.bar')].map(r => {
		const b = r.getBoundingClientRect()
		return {X: b.x, Y: b.y, Width: b.width, Height: b.height, Kind: r.classList[1], Title: r.querySelector('title').textContent,
			DrawingX: drawing.x, DrawingWide: drawing.width}
	})
	return {Bars: bars, Content: document.documentElement.scrollWidth, Window: window.innerWidth, Right: Math.max(...right)}`

// colorsOf are the colors of the bars of the page by kind, on light and on dark ground.
var colorsOf = map[bool]map[string]color.RGBA{
	false: {
		"suspended": {0xb4, 0xbc, 0xc8, 255}, "creating": {0xf0, 0xc2, 0x4b, 255}, "starting": {0xe5, 0x8a, 0x2e, 255}, "running": {0x2f, 0x9e, 0x5b, 255},
	},
	true: {
		"suspended": {0x64, 0x70, 0x83, 255}, "creating": {0xd9, 0xa7, 0x2c, 255}, "starting": {0xd5, 0x78, 0x2a, 255}, "running": {0x37, 0xad, 0x68, 255},
	},
}

// checkPage looks at the page in a browser: what it says, and that the picture has every phase where its times are.
func checkPage(k *kubectl, data timelineData) {
	k.Helper()
	page := filepath.Join(k.TempDir(), "train.html")
	k.pluginOK("timeline", "train", "-o", "html", "--file", page, "--utc")
	if out := k.pluginOK("timeline", "train", "-o", "html", "--utc"); !sameFile(k, page, out) {
		k.Error("the page on the output differs from that in the file")
	}
	browser{T: k.T, width: 1000, height: 1000}.checkTexts(page, data)
	for name, window := range map[string]browser{
		"light":  {width: 1000, height: 1000},
		"dark":   {width: 1000, height: 1000, dark: true},
		"narrow": {width: 500, height: 1400},
	} {
		k.Run(name, func(t *testing.T) {
			window.T = t
			var found layout
			window.ask(page, askLayout, &found)
			if found.Content > found.Window || found.Right > found.Window || found.Window != float64(window.width) {
				t.Errorf("the page is %v pixels wide and reaches to %v, the window is %v", found.Content, found.Right, found.Window)
			}
			window.checkBars(page, data, found.Bars)
		})
	}
}

func sameFile(k *kubectl, path, content string) bool {
	k.Helper()
	read, err := os.ReadFile(path)
	if err != nil {
		k.Fatal(err)
	}
	return string(read) == content
}

func (b browser) checkTexts(page string, data timelineData) {
	b.Helper()
	dom := b.dom(page)
	text := html.UnescapeString(dom)
	for _, want := range []string{"Failed (Cancelled), 4 attempts in", oddReason, endReason, data.Attempts[2].FirstCause.Pod, "<title>Timeline of jobset"} {
		if !strings.Contains(text, want) {
			b.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(dom, "<script") || strings.Contains(dom, "<b>slow") {
		b.Error("what a user wrote is markup in the page")
	}
}

// checkBars compares times with places, and places with colors in the picture.
func (b browser) checkBars(page string, data timelineData, bars []bar) {
	b.Helper()
	if len(bars) != len(data.Phases) {
		b.Fatalf("%d bars for %d phases", len(bars), len(data.Phases))
	}
	picture := b.picture(page)
	at := func(x, y float64) color.RGBA {
		return color.RGBAModel.Convert(picture.At(int(x), int(y))).(color.RGBA)
	}
	life := data.End.Sub(data.Begin).Seconds()
	for i, phase := range data.Phases {
		bar := bars[i]
		place := bar.DrawingX + bar.DrawingWide*phase.Begin.Sub(data.Begin).Seconds()/life
		wide := max(bar.DrawingWide*phase.Seconds/life, bar.DrawingWide*0.004)
		if bar.Kind != phase.Kind || math.Abs(bar.X-place) > 4.5 || math.Abs(bar.Width-wide) > 1 {
			b.Errorf("phase %d is %s at %.1f, %.1f wide; want %s at %.1f, %.1f wide", i, bar.Kind, bar.X, bar.Width, phase.Kind, place, wide)
		}
		if bar.X < bar.DrawingX-0.5 || bar.X+bar.Width > bar.DrawingX+bar.DrawingWide+0.5 {
			b.Errorf("phase %d is outside of the drawing: %+v", i, bar)
		}
		// A short phase is drawn wider than it was, and what follows covers the rest.
		if bar.DrawingWide*phase.Seconds/life < 3 {
			continue
		}
		want := colorsOf[b.dark][phase.Kind]
		if got := at(bar.X+bar.Width/2, bar.Y+bar.Height/2); got != want {
			b.Errorf("phase %d, %s, has the color %v at %.0f,%.0f; want %v", i, phase.Kind, got, bar.X+bar.Width/2, bar.Y+bar.Height/2, want)
		}
		if got := at(bar.X+bar.Width/2, bar.Y-2); got == want {
			b.Errorf("phase %d has its color above its bar, too", i)
		}
	}
}

func TestPluginTimelineOfOtherStates(t *testing.T) {
	tier.OnRequest(t, "needs a browser")
	t.Parallel()
	k := newKubectl(t)
	k.env = []string{"LC_ALL=C.UTF-8"}
	k.okIn(manifest("train", runOn, "suspend: true"), "apply", "-f", "-")
	k.eventually(func() string {
		if got := k.pluginOK("timeline", "train"); !strings.Contains(got, "/train: Suspended (SuspendedJobs), age") || !strings.Contains(got, "╌ suspended") {
			return got
		}
		return ""
	})
	k.okIn(manifest("quick", runShort), "apply", "-f", "-")
	k.wait("--for=condition=Completed", "jobset/quick")
	got := k.pluginOK("timeline", "jobset/quick", "--jobs")
	for _, want := range []string{"/quick: Completed, 1 attempt in", "quick-workers-0 ", "quick-workers-1 ", "✓ completed"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no name":               {want: "NAME: give the name of a JobSet"},
		"no such set":           {args: []string{"other"}, want: `"other" not found`},
		"a format that is not":  {args: []string{"train", "-o", "svg"}, want: "allowed formats are: go-template,go-template-file,html,json"},
		"a file for text":       {args: []string{"train", "--file", "x"}, want: "--file: needs -o html"},
		"a directory as a file": {args: []string{"train", "-o", "html", "--file", t.TempDir()}, want: "--file:"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := k.plugin(append([]string{"timeline"}, tc.args...)...); got.code == 0 || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("exit code %d, message %q does not contain %q", got.code, got.stderr, tc.want)
			}
		})
	}
}
