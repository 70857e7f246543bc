// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"sigs.k8s.io/yaml"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == allocate {
		useMemory(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func TestSmallRunHasFortyAttacks(t *testing.T) {
	names, small := map[string]bool{}, 0
	for _, a := range attacks() {
		if names[a.name] {
			t.Errorf("%q is there twice", a.name)
		}
		names[a.name] = true
		if !a.full {
			small++
		}
	}
	if small < 40 {
		t.Errorf("the small run has %d attacks, want at least 40", small)
	}
}

func TestLimitOnMemoryHolds(t *testing.T) {
	if err := checkLimit(1 << 28); err != nil {
		t.Error(err)
	}
}

func TestProcessThatEndedIsNotAlive(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := process{name: "cat", pid: cmd.Process.Pid}
	if !p.alive() {
		t.Error("a running program is taken for dead")
	}
	if peak := (process{name: "this", pid: os.Getpid()}).peak(); peak < 1 {
		t.Errorf("peak of %d MiB, want at least 1", peak)
	}
	in.Close()
	for p.alive() { // ends when the program is a zombie, which this test has not waited for
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestBodiesAreWhatTheySay decodes those that are meant to be decoded: one that is cut off by a slip is no attack.
func TestBodiesAreWhatTheySay(t *testing.T) {
	for name, c := range map[string]struct {
		body   []byte
		decode func([]byte, *jobsetv1alpha2.JobSet) error
		jobs   int
	}{
		"claims":   {claims(2, 3), fromJSON, 1},
		"rules":    {rules(3, `{"name":"r"}`), fromJSON, 3},
		"patterns": {patterns(`"x"`), fromJSON, 1},
		"YAML":     {yamlJobs("  - {}\n  - {}\n"), fromYAML, 2},
		"protobuf": {protobuf([]byte("\x0a\x00\x0a\x00\x0a\x00")), fromProtobuf, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var js jobsetv1alpha2.JobSet
			if err := c.decode(c.body, &js); err != nil {
				t.Fatal(err)
			}
			if got := len(js.Spec.ReplicatedJobs); got != c.jobs {
				t.Errorf("%d replicatedJobs, want %d", got, c.jobs)
			}
		})
	}
	var js jobsetv1alpha2.JobSet
	if err := fromProtobuf(protobufJobs(), &js); err != nil {
		t.Fatal(err)
	}
	last := js.Spec.ReplicatedJobs[len(js.Spec.ReplicatedJobs)-1]
	if got := last.Template.Spec.Template.Spec.Containers[0].Image; got != "i" || !*js.Spec.Suspend {
		t.Errorf("image %q of a set that is suspended: %v, want %q and true", got, *js.Spec.Suspend, "i")
	}
}

func fromJSON(body []byte, js *jobsetv1alpha2.JobSet) error { return json.Unmarshal(body, js) }
func fromYAML(body []byte, js *jobsetv1alpha2.JobSet) error { return yaml.Unmarshal(body, js) }

// fromProtobuf takes the object out of its envelope, whose type has the length of that of every JobSet.
func fromProtobuf(body []byte, js *jobsetv1alpha2.JobSet) error {
	head := len(protobuf(nil)) - len(field(2, append(field(1, field(1, []byte("protobuf"))), field(2, nil)...)))
	body = body[head+1:]
	for body[0]&0x80 != 0 {
		body = body[1:]
	}
	return js.Unmarshal(body[1:])
}
