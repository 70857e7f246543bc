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

// fakeMake stands for make, and for the program that runs tests: it notes that a test failed and must be repeated. In the first call,
// another gate begins and ends in the same checkout after that.
const fakeMake = `#!/bin/bash
state=${3#*-state }
state=${state% --}
if [[ ! -e _output/began ]]; then
  touch _output/began
  echo "TestA failed" >>"$state"
  hack/gate.sh unit >_output/inner 2>&1; echo "inner: $?" >>_output/inner
else
  echo "all passed" >>"$state"
fi
`

// fakeGo stands for go build: the program that it writes repeats tests, and none passes.
const fakeGo = `#!/bin/bash
mkdir -p _output
cat >_output/retest-program <<'END'
#!/bin/bash
cat "$3" && [[ -s "$3" ]] && ! grep -q failed "$3"
END
chmod +x _output/retest-program
`

// gated is a checkout with hack/gate.sh. The function runs it, and returns what it prints and whether it succeeds.
func gated(t *testing.T, files map[string]string) (root string, gate func() (string, error)) {
	t.Helper()
	root = t.TempDir()
	for _, name := range []string{"gate.sh", "measured.sh", "alone.sh", "budgets"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "hack", name), string(content))
	}
	for name, content := range files {
		write(t, filepath.Join(root, "bin", name), content)
	}
	return root, func() (string, error) {
		command := exec.CommandContext(t.Context(), "hack/gate.sh", "unit")
		command.Dir, command.Env = root, append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		return string(out), err
	}
}

// Two gates in one checkout do not take the failures of each other away.
func TestGatesAreApart(t *testing.T) {
	root, gate := gated(t, map[string]string{"make": fakeMake, "go": fakeGo})
	out, err := gate()
	if err == nil || !strings.Contains(out, "TestA failed") || !strings.HasSuffix(out, "failed: repeated tests\n") {
		t.Errorf("the first gate: %v\n%s", err, out)
	}
	inner, err := os.ReadFile(filepath.Join(root, "_output", "inner"))
	if err != nil || !strings.HasSuffix(string(inner), "\ninner: 0\n") {
		t.Errorf("the second gate: %v\n%s", err, inner)
	}
	if left, err := filepath.Glob(filepath.Join(root, "_output", "*.retest")); err != nil || len(left) > 0 {
		t.Errorf("%q are left (%v)", left, err)
	}
}

// A part that ends before any test fails the gate, also if make is killed.
func TestGateWithoutTests(t *testing.T) {
	for name, script := range map[string]string{"make fails": "exit 2", "make is killed": "kill -9 $$"} {
		t.Run(name, func(t *testing.T) {
			_, gate := gated(t, map[string]string{"make": "#!/bin/bash\n" + script + "\n", "go": fakeGo})
			if out, err := gate(); err == nil || !strings.HasSuffix(out, "\nfailed: unit\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	t.Run("make runs nothing", func(t *testing.T) {
		_, gate := gated(t, map[string]string{"make": "#!/bin/bash\n", "go": fakeGo})
		if out, err := gate(); err == nil || !strings.HasSuffix(out, "\nfailed: repeated tests\n") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
