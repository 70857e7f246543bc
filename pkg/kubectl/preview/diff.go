// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// externalDiff is the variable that names another program for diffs, as for `kubectl diff`.
const externalDiff = "KUBECTL_EXTERNAL_DIFF"

// comparison is an object in the cluster and what the manifest makes of it. Each is "" for an object that does not exist.
type comparison struct {
	name, live, next string
}

// comparisons returns the comparisons of the objects that differ.
func comparisons(r *Report) ([]comparison, error) {
	var all []comparison
	for _, view := range r.Sets {
		live, next := view.Objects()
		if next == nil {
			continue
		}
		c := comparison{name: fileName(next)}
		var err error
		if c.live, err = document(live); err != nil {
			return nil, err
		}
		if c.next, err = document(next); err != nil {
			return nil, err
		}
		if c.live != c.next {
			all = append(all, c)
		}
	}
	return all, nil
}

// fileName names an object as the files of `kubectl diff` are named.
func fileName(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	return strings.Join([]string{gvk.Group, gvk.Version, gvk.Kind, object.GetNamespace(), object.GetName()}, ".")
}

func document(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	text, err := yaml.Marshal(usersPart(object).Object)
	return string(text), err
}

// printDiff writes the differences of the report as a unified diff, or has the program of the user show them.
func printDiff(ctx context.Context, streams genericiooptions.IOStreams, r *Report, t cli.Terminal) error {
	all, err := comparisons(r)
	if err != nil || len(all) == 0 {
		return err
	}
	if command := os.Getenv(externalDiff); command != "" {
		return runDiff(ctx, streams, command, all)
	}
	var lines []string
	for _, c := range all {
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(c.live), B: difflib.SplitLines(c.next), FromFile: "LIVE/" + c.name, ToFile: "MERGED/" + c.name, Context: 3,
		})
		if err != nil {
			return err
		}
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			lines = append(lines, t.Paint(lineColors[line[:min(1, len(line))]], line))
		}
	}
	t.Width = 0 // a patch must be whole
	return t.Lines(streams.Out, lines...)
}

var lineColors = map[string]cli.Color{"+": cli.Good, "-": cli.Bad, "@": cli.Quiet}

// diffArgument is what may follow the name of the program: no more than `kubectl diff` takes.
var diffArgument = regexp.MustCompile(`^[a-zA-Z0-9=-]+$`)

// runDiff has the program compare two directories. Its exit code 1 means that they differ.
func runDiff(ctx context.Context, streams genericiooptions.IOStreams, command string, all []comparison) error {
	dir, err := os.MkdirTemp("", "kubectl-jobset-preview-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	live, merged := filepath.Join(dir, "LIVE"), filepath.Join(dir, "MERGED")
	for _, c := range all {
		for into, text := range map[string]string{live: c.live, merged: c.next} {
			if err := os.MkdirAll(into, 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(into, c.name), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	words := strings.Fields(command)
	arguments := []string{}
	for _, word := range words[min(1, len(words)):] {
		if diffArgument.MatchString(word) {
			arguments = append(arguments, word)
		}
	}
	if len(words) == 0 {
		return fmt.Errorf("%s: must name a program, not %q", externalDiff, command)
	}
	program := exec.CommandContext(ctx, words[0], append(arguments, live, merged)...) //nolint:gosec // the program of the user
	program.Stdin, program.Stdout, program.Stderr = streams.In, streams.Out, streams.ErrOut
	var ended *exec.ExitError
	if err := program.Run(); err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 1) {
		return fmt.Errorf("%s: running %s: %w", externalDiff, words[0], err)
	}
	return nil
}
