// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// diffOf returns what -o diff prints about a manifest that changes the set of the cluster.
func diffOf(t *testing.T, live *jobsetv1alpha2.JobSet, change func(*jobsetv1alpha2.JobSet)) (string, error) {
	t.Helper()
	set := previewUpdate(t, &answers{live: live}, change)
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	err := printDiff(t.Context(), streams, &Report{Sets: []View{&set}}, cli.Terminal{})
	return out.String(), err
}

func suspend(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }

func TestDiff(t *testing.T) {
	t.Setenv(externalDiff, "")
	got, err := diffOf(t, existing(), suspend)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(got, "\n")
	want := []string{"--- LIVE/jobset.x-k8s.io.v1alpha2.JobSet.default.train", "+++ MERGED/jobset.x-k8s.io.v1alpha2.JobSet.default.train"}
	if diff := cmp.Diff(want, lines[:min(2, len(lines))]); diff != "" {
		t.Errorf("head (-want +got):\n%s", diff)
	}
	var changed []string
	for _, line := range lines[min(2, len(lines)):] {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			changed = append(changed, line)
		}
	}
	if diff := cmp.Diff([]string{"+  suspend: true"}, changed); diff != "" {
		t.Errorf("changed lines (-want +got):\n%s", diff)
	}
	if got, err := diffOf(t, existing(), func(*jobsetv1alpha2.JobSet) {}); got != "" || err != nil {
		t.Errorf("nothing changes: %q, %v", got, err)
	}
}

func TestDiffOfANewSet(t *testing.T) {
	t.Setenv(externalDiff, "")
	report, err := preview(t.Context(), &Session{cluster: &answers{sets: trainSet()}}, jobSetsOf("train"))
	if err != nil {
		t.Fatal(err)
	}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	if err := printDiff(t.Context(), streams, report, cli.Terminal{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
		if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "@@") {
			t.Errorf("%q is no added line", line)
		}
	}
	if !strings.Contains(out.String(), "+  name: train\n") {
		t.Errorf("diff: %s", out)
	}
}

func TestExternalDiff(t *testing.T) {
	program := filepath.Join(t.TempDir(), "compare")
	for name, tc := range map[string]struct {
		script, want, wantErr string
	}{
		"a program that finds differences": {script: "cat $2/*train | grep -c suspend; cat $3/*train | grep -c suspend; echo $1; exit 1", want: "0\n1\n-x\n"},
		"a program that fails":             {script: "exit 2", wantErr: "KUBECTL_EXTERNAL_DIFF: running " + program + ": exit status 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+tc.script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv(externalDiff, program+" -x $(true)")
			got, err := diffOf(t, existing(), suspend)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tc.want || text != tc.wantErr {
				t.Errorf("got %q, error %q; want %q, %q", got, text, tc.want, tc.wantErr)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	type codes struct{ Default, Detailed int }
	code := func(o options, r *Report) int {
		var code cli.ExitCode
		errors.As(o.exitCode(r), &code)
		return int(code)
	}
	for name, tc := range map[string]struct {
		report Report
		want   codes
	}{
		"nothing changes":       {want: codes{0, 0}},
		"something changes":     {report: Report{Changed: true}, want: codes{0, 2}},
		"something is refused":  {report: Report{Refused: true}, want: codes{1, 1}},
		"refused among changes": {report: Report{Refused: true, Changed: true}, want: codes{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := codes{code(options{}, &tc.report), code(options{detailed: true}, &tc.report)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("exit codes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a name in place of a file":   {[]string{"train"}, "train: preview takes manifests, as -f FILE, and no names"},
		"no file":                     {nil, "--filename: give a file with JobSets, or - for the standard input"},
		"an empty manager":            {[]string{"-f", "-", "--field-manager="}, "--field-manager: must be the name of a field manager, not empty"},
		"an unknown format":           {[]string{"-f", "-", "-o", "table"}, `unable to match a printer suitable for the output format "table"`},
		"a file that does not exist":  {[]string{"-f", "/no/such/file.yaml"}, `the path "/no/such/file.yaml" does not exist`},
		"text that is not a manifest": {[]string{"-f", "-"}, `unable to decode "standard input": must be an object with apiVersion and kind, not a string`},
	} {
		t.Run(name, func(t *testing.T) {
			streams, in, _, _ := genericiooptions.NewTestIOStreams()
			in.WriteString("hello")
			f := cli.NewFactory(streams)
			*f.Flags.APIServer = "http://127.0.0.1:1"
			cmd := NewCommand(f, jobSets)
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			cmd.SetArgs(tc.args)
			cmd.SetOut(&bytes.Buffer{})
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
