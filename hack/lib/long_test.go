// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lib_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A part counts for the tree only if all its tests ran.
func TestLongRemembersWholePartsOnly(t *testing.T) {
	for name, test := range map[string]struct {
		flags, make string
		want        string
		remembered  bool
	}{
		"all tests of a part pass":   {make: "exit 0", want: "green", remembered: true},
		"a test fails":               {make: "exit 2", want: "red"},
		"make is killed":             {make: "kill -9 $$", want: "red"},
		"flags may leave tests out":  {make: "exit 0", flags: "-run TestA", want: "green, but with GO_TEST_FLAGS=-run TestA"},
		"the tree changes meanwhile": {make: "touch changed", want: "green, but the tree changed"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			content, err := os.ReadFile(filepath.Join("..", "long.sh"))
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string]string{
				"hack/long.sh": string(content), "hack/stop-clusters.sh": "#!/bin/sh\n", "hack/ensure-packages.sh": "#!/bin/sh\n",
				"hack/green.sh": "#!/bin/sh\ncase $1 in tree) ls changed 2>/dev/null || echo same ;; note) echo $2 >>noted ;; esac\n",
				"bin/make":      "#!/bin/bash\n" + test.make + "\n",
			} {
				write(t, filepath.Join(root, file), content)
			}
			command := exec.CommandContext(t.Context(), "hack/long.sh", "faults")
			command.Dir = root
			command.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "GO_TEST_FLAGS="+test.flags)
			out, err := command.CombinedOutput()
			if (err != nil) != (test.want == "red") || !strings.Contains(string(out), "faults  "+test.want+"  ") {
				t.Errorf("%v\n%s", err, out)
			}
			noted, _ := os.ReadFile(filepath.Join(root, "noted"))
			if (string(noted) == "long/faults\n") != test.remembered {
				t.Errorf("noted: %q", noted)
			}
		})
	}
}
