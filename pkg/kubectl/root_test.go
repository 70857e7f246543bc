// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// TestLogLinesOfLibraries runs commands against a server that breaks off its answers. Users see the error of the command once, and no log
// line of a library unless they ask for it.
func TestLogLinesOfLibraries(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"kind":`)
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"tree train", "why train", "top train", "timeline train", "list", "logs train", "tree train -v=1"} {
		t.Run(args, func(t *testing.T) {
			logged, err := stderrOf(t, strings.Fields(args+" --server="+server.URL+" --kubeconfig="+config))
			if err == nil && !strings.HasPrefix(args, "why") {
				t.Error("the command did not fail")
			}
			if got, want := strings.Contains(logged, "error when reading response body"), strings.Contains(args, "-v"); got != want {
				t.Errorf("a log line: %v, want %v\n%s", got, want, logged)
			}
		})
	}
}

// stderrOf runs a command and returns what libraries write to the standard error.
func stderrOf(t *testing.T, args []string) (string, error) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = write
	defer func() {
		os.Stderr = before
		klog.ClearLogger()
	}()
	cmd := NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	cmd.SetArgs(args)
	failure := cmd.ExecuteContext(t.Context())
	klog.Flush()
	write.Close()
	logged, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	return string(logged), failure
}

// TestKindsOfCommands has commands name the kinds that they take.
func TestKindsOfCommands(t *testing.T) {
	for args, want := range map[string]string{
		"top sqj/etl":     `NAME: must be a JobSet or LeaderWorkerSet, as NAME, jobset/NAME or leaderworkerset/NAME, not "sqj/etl"`,
		"logs dset/llm":   `NAME: must be a JobSet, SequentialJob or LeaderWorkerSet, as NAME, jobset/NAME, sequentialjob/NAME or leaderworkerset/NAME, not "dset/llm"`,
		"suspend lws/llm": `NAME: must be a JobSet or SequentialJob, as NAME, jobset/NAME or sequentialjob/NAME, not "lws/llm"`,
		"pause train/x/y": `NAME: must be a LeaderWorkerSet, as NAME or leaderworkerset/NAME, not "train/x/y"`,
	} {
		cmd := NewCommand(genericiooptions.NewTestIOStreamsDiscard())
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
