// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clienttesting "k8s.io/client-go/testing"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// loadInto puts the objects into the cluster and reads them.
func (c *rolesCluster) loadInto(t *testing.T, w *env, others ...runtime.Object) *Evidence {
	t.Helper()
	objects := append([]runtime.Object{c.RolesSet}, others...)
	for i := range c.sets {
		objects = append(objects, &c.sets[i])
	}
	for _, o := range objects {
		tracker := w.jobSets.Tracker()
		if _, is := o.(*corev1.Service); is {
			tracker = w.kube.Tracker()
		}
		if err := tracker.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	e, err := load(context.Background(), w.Clients, rolesKind(), "llm")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLoadOfADisaggregatedSet(t *testing.T) {
	w := newEnv(t, &Evidence{})
	e := runningRoles().loadInto(t, w)
	if len(e.Roles.Sets) != 2 || len(e.RoleChildren) != 0 || len(e.TakenRoleSets) != 0 || len(e.Services) != 2 {
		t.Errorf("got %+v", e)
	}
	for _, action := range w.kube.Actions() {
		if action.Matches("list", "pods") {
			t.Error("pods of a set that runs are listed")
		}
	}
	c := runningRoles()
	notReadyRole(c)
	if e := c.loadInto(t, newEnv(t, &Evidence{})); len(e.RoleChildren) != 1 || e.RoleChildren[0].Name != c.sets[1].Name {
		t.Errorf("the LeaderWorkerSet that is not ready was not read: %+v", e.RoleChildren)
	}
}

// TestServicesOfRolesThatMayNotBeListed reads them by name, as the role of people on call allows.
func TestServicesOfRolesThatMayNotBeListed(t *testing.T) {
	c, w := runningRoles(), newEnv(t, &Evidence{})
	w.kube.PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden("services") })
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: c.sets[1].Name + "-prv"}}
	e := c.loadInto(t, w, service)
	if r := diagnoseRoles(e); r.Findings[0].Cause != ServiceForeign || e.forbidden("services") {
		t.Errorf("got %+v, not looked at: %v", r.Findings[0], e.NotLookedAt)
	}
}

// TestLoadOfNamesThatOthersHave has objects of others under all names that a set needs.
func TestLoadOfNamesThatOthersHave(t *testing.T) {
	c := runningRoles()
	scaled(2, false)(c)
	scaler := c.Scalers["llm-decode"]
	scaler.Namespace, c.sets[1].OwnerReferences = "team", nil
	e := c.loadInto(t, newEnv(t, &Evidence{}), scaler)
	if len(e.TakenRoleSets) != 1 || e.Scalers["llm-decode"] == nil {
		t.Errorf("taken: %v, scalers %v", e.TakenRoleSets, e.Scalers)
	}
	c = runningRoles()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: c.sets[1].Name + "-prv"}}
	if r := diagnoseRoles(c.loadInto(t, newEnv(t, &Evidence{}), service)); r.Findings[0].Cause != ServiceForeign {
		t.Errorf("a Service of somebody else was not found: %+v", r.Findings[0])
	}
}

func TestDisaggregatedSetThatDoesNotExist(t *testing.T) {
	w := newEnv(t, &Evidence{})
	if err := w.jobSets.Tracker().Add(runningRoles().RolesSet); err != nil {
		t.Fatal(err)
	}
	r, err := DisaggregatedSet(context.Background(), w.Clients, "llmm")
	if err != nil || r.Findings[0].Cause != NotFound || !strings.Contains(strings.Join(r.Findings[0].Commands, "\n"), "why dset/llm") {
		t.Errorf("got %+v, error %v", r, err)
	}
}

// TestGateOfTheServer has a server that does not serve the kind, and says why, or does not.
func TestGateOfTheServer(t *testing.T) {
	for name, tc := range map[string]struct {
		document string
		err      error
		want     Cause
	}{
		"the gate is off":          {`{"featureGates":{"DisaggregatedSet":false}}`, nil, FeatureGateOff},
		"the gate is on":           {`{"featureGates":{"DisaggregatedSet":true}}`, nil, APIServiceUnavailable},
		"another server":           {``, errors.New("not found"), APIServiceUnavailable},
		"an answer nobody expects": {`<html>`, nil, APIServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loader{Clients: newEnv(t, &Evidence{}).Clients, e: &Evidence{of: rolesKind(), Name: "llm", Namespace: "team", Unread: notServed(disaggregatedsetv1.GroupName)}}
			l.document = func(context.Context, string) ([]byte, error) { return []byte(tc.document), tc.err }
			l.readGates(context.Background())
			if first := diagnoseRoles(l.e).Findings[0]; first.Cause != tc.want {
				t.Errorf("got %s: %s", first.Cause, first.Summary)
			}
		})
	}
}

// TestRenderRoles shows reports about DisaggregatedSets on terminals of several widths.
func TestRenderRoles(t *testing.T) {
	report := func(change ...func(*rolesCluster)) *Report {
		c := runningRoles()
		for _, f := range change {
			f(c)
		}
		return diagnoseRoles(c.evidence())
	}
	cases := rolesCases()
	reports := []*Report{
		report(scaled(0, true)),
		report(diagnosed(workerWaits(withoutNode("0/24 nodes are available: 4 node(s) had untolerated taint(s), 20 Insufficient nvidia.com/gpu.")))),
		report(rolls(20 * time.Minute)),
		report(cases["a quota refuses a role"].change...),
		report(append(cases["the name of a scaler is taken"].change, func(c *rolesCluster) { c.NotLookedAt = []Gap{{"services", "forbidden"}} })...),
		report(unobservedRoles("false")),
		report(func(c *rolesCluster) {
			c.RolesSet.Spec.Slices = ptr.To[int32](20)
			c.available(false)
		}),
	}
	for _, width := range []int{0, 60, 100} {
		var out strings.Builder
		for _, report := range reports {
			if err := render(&out, cli.DisaggregatedSet, report, cli.Terminal{Width: width}, now); err != nil {
				t.Fatal(err)
			}
			out.WriteString("\n")
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if width > 0 && cli.Columns(line) > width && !strings.Contains(line, "kubectl") {
				t.Errorf("wider than %d columns: %q", width, line)
			}
		}
		golden.Compare(t, fmt.Sprintf("disaggregatedset-%d.txt", width), out.String())
	}
}

// notServed is the answer of an API server that does not know a replica.
func notServed(group string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Group: group, Resource: "disaggregatedsets"}, "", "", 0, true)
}
