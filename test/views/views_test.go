// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

func forbidden(text string) string { return `Error creating: pods "p-0" is forbidden: ` + text }

// faults are mistakes that people make, in the words of the components of Kubernetes. All kinds have the same word for a fault;
// the status of the kinds does not have it for faults of containers, of which only `why` knows.
var faults = []struct {
	name string
	fault
	// want is the reason in all kinds and views; empty for faults that no status names.
	want string
}{
	{"quota of pods", fault{refused: forbidden("exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2")}, "QuotaExceeded"},
	{"quota without requests", fault{refused: forbidden("failed quota: few: must specify limits.cpu for: main")}, "AdmissionDenied"},
	{"service account is missing", fault{refused: forbidden(`error looking up service account ns/robot: serviceaccount "robot" not found`)}, "AdmissionDenied"},
	{"priority class is missing", fault{refused: forbidden("no PriorityClass with name high was found")}, "AdmissionDenied"},
	{"pod security", fault{refused: forbidden(`violates PodSecurity "restricted:latest": runAsNonRoot != true`)}, "AdmissionDenied"},
	{"limit range", fault{refused: forbidden("maximum memory usage per Container is 1Gi, but limit is 2Gi")}, "AdmissionDenied"},
	{"webhook", fault{refused: `Error creating: admission webhook "w.example.com" denied the request: no`}, "AdmissionDenied"},
	{"runtime class is missing", fault{refused: forbidden(`pod rejected: RuntimeClass "gvisor" not found`)}, "AdmissionDenied"},
	{"no room", fault{waits: "0/3 nodes are available: 3 Insufficient cpu."}, "Unschedulable"},
	{"node selector", fault{waits: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."}, "Unschedulable"},
	{"taint", fault{waits: "0/3 nodes are available: 3 node(s) had untolerated taint {gpu: true}."}, "Unschedulable"},
	{"volume claim is missing", fault{waits: `0/3 nodes are available: persistentvolumeclaim "data" not found.`}, "Unschedulable"},
	{"volume claim is not bound", fault{waits: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."}, "Unschedulable"},
	{"resource claim is missing", fault{waits: `waiting for resource claim "gpu" to be created`}, "Unschedulable"},
	{"name is taken", fault{taken: true}, "NameConflict"},
	{"image", fault{container: "ImagePullBackOff", message: `Back-off pulling image "example.com/main:1"`}, ""},
	{"config map is missing", fault{container: "CreateContainerConfigError", message: `configmap "settings" not found`}, ""},
}

// TestOneFaultOneWord compares the reason of all views of all kinds, and the table with the golden file.
func TestOneFaultOneWord(t *testing.T) {
	rows := [][]string{{"FAULT", "KIND", "PHASE", "GET", "LIST", "TREE", "TIMELINE", "WHY", "CAUSE"}}
	for _, tc := range faults {
		for _, kind := range kinds {
			a := &api{}
			a.add("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
			object := kind.create(t, a, tc.fault)
			phase, get := wide(t, object)
			url, name := a.serve(t), kind.resource+"/"+object.(metav1.Object).GetName()
			shown := map[string]string{"get": get, "list": run(t, url, "list", kind.resource)[0]}
			for _, view := range []string{"tree", "timeline", "why"} {
				shown[view] = run(t, url, view, name)[0]
			}
			for view, word := range shown {
				if word != get || tc.want != "" && word != tc.want {
					t.Errorf("%s of a %s: %s says %q, kubectl get says %q, want %q", tc.name, kind.name, view, word, get, tc.want)
				}
			}
			rows = append(rows, []string{tc.name, kind.name, phase, get, shown["list"], shown["tree"], shown["timeline"], shown["why"], run(t, url, "why", name)[1]})
		}
	}
	golden.Compare(t, "faults.txt", table(rows))
}

// run returns the reason that a command prints, and the first cause of `why`.
func run(t *testing.T, url string, args ...string) [2]string {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	cmd := kubectl.NewCommand(streams)
	cmd.SetArgs(append(args, "-o", "json", "--server="+url, "--namespace="+builders.Namespace))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%s: %v\n%s%s", args, err, out, errOut)
	}
	type summary struct{ Reason string }
	var got struct {
		summary
		Items    []summary
		Findings []struct{ Cause string }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	if len(got.Items) > 0 {
		return [2]string{got.Items[0].Reason}
	}
	if len(got.Findings) > 0 {
		return [2]string{got.Reason, got.Findings[0].Cause}
	}
	return [2]string{got.Reason}
}

// table aligns the cells.
func table(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += fmt.Sprintf("%-*s  ", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
