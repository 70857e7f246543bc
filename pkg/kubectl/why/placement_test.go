// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// roomCases are clusters without room for a set with exclusive placement.
func roomCases() map[string]roomCase {
	all := map[string]roomCase{}
	for _, table := range []func() map[string]roomCase{takenCases, resourceCases, nodeCases, schedulerCases} {
		maps.Copy(all, table())
	}
	return all
}

// TestEveryLackOfRoomIsNamed lets the placer and the plan of the controller decide about sets for which there is no
// room, and reads the cause from what they wrote.
func TestEveryLackOfRoomIsNamed(t *testing.T) {
	for name, tc := range roomCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := tc.world.report(t).Findings[0]
			if first.Cause != tc.want {
				t.Errorf("the cause is %s, want %s: %s", first.Cause, tc.want, first.Summary)
			}
			for _, word := range tc.words {
				if !strings.Contains(first.Summary, word) {
					t.Errorf("the sentence does not contain %q: %s", word, first.Summary)
				}
			}
			var evidence strings.Builder
			for _, fact := range first.Evidence {
				fmt.Fprintf(&evidence, "%s %s\n", fact.Object, fact.Text)
			}
			for _, fact := range tc.facts {
				if !strings.Contains(evidence.String(), fact) {
					t.Errorf("the evidence does not contain %q:\n%s", fact, &evidence)
				}
			}
			if len(first.Commands) == 0 {
				t.Error("there is no command to run next")
			}
		})
	}
}

// TestPlacementCausesWithoutMessage has what the placement says in words that are not known.
func TestPlacementCausesWithoutMessage(t *testing.T) {
	for reason, want := range map[string]Cause{"NoDomain": NoFreeDomain, "NodesUnknown": NodesUnknown, "InvalidTemplate": JobTemplateRefused, "SomethingNew": NoFreeDomain} {
		report := Diagnose(healthy(without, has(jobsetv1alpha2.PlacementPending, reason, "in other\nwords")))
		if first := report.Findings[0]; first.Cause != want || !strings.HasSuffix(first.Summary, ": in other words") || len(first.Commands) == 0 {
			t.Errorf("%s: the finding is %+v, want the cause %s", reason, first, want)
		}
	}
}

// TestUnknownNodes names the permission that may be missing.
func TestUnknownNodes(t *testing.T) {
	for message, want := range map[string]string{
		"nodes and pods are not known yet: daemonsets (daemonsets.apps is forbidden: no), nodes": "daemonsets",
		"nodes and pods are not known yet: limitranges, pods":                                    "limitranges",
		"nodes and pods are not known yet: ":                                                     "nodes",
		"other words":                                                                            "nodes",
	} {
		report := Diagnose(healthy(without, has(jobsetv1alpha2.PlacementPending, "NodesUnknown", message)))
		want = "kubectl auth can-i list " + want + " --as=system:serviceaccount:jobset-system:jobset-controller-manager"
		if got := report.Findings[0].Commands[0]; got != want {
			t.Errorf("%q: the command is %s, want %s", message, got, want)
		}
	}
}

func TestSetsThatHaveTheirDomainsDoNotWait(t *testing.T) {
	ended := func(js *jobsetv1alpha2.JobSet) {
		meta.SetStatusCondition(&js.Status.Conditions, metav1.Condition{Type: jobsetv1alpha2.PlacementPending, Status: metav1.ConditionFalse, Reason: "Placed"})
		js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: rackLabel}
	}
	if first := Diagnose(healthy(set(ended))).Findings[0]; first.Cause != Running {
		t.Errorf("the finding is %+v", first)
	}
}

// TestRenderPlacement shows the reports about sets without room on terminals of several widths.
func TestRenderPlacement(t *testing.T) {
	cases := roomCases()
	var reports []*Report
	for _, name := range []string{"several sets have the domains", "pods of no set use the CPU", "others took the room in the domain", "a node of the domain was cordoned"} {
		report := cases[name].world.report(t)
		for i := range report.Findings {
			for j := range report.Findings[i].Evidence {
				report.Findings[i].Evidence[j].Time = nil // the condition has the present time
			}
		}
		reports = append(reports, report)
	}
	for _, width := range []int{0, 60, 100, 200} {
		var out strings.Builder
		for _, report := range reports {
			if err := render(&out, cli.JobSet, report, cli.Terminal{Width: width}, now); err != nil {
				t.Fatal(err)
			}
			out.WriteString("\n")
		}
		golden.Compare(t, fmt.Sprintf("placement-%d.txt", width), out.String())
	}
}
