// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// What runs the sets: the API service of the group and the controller.

func ownerUID(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// isNotServed reports that the set was not found because its whole group is not served.
func isNotServed(d *diagnosis) bool { return d.Unread != nil && cli.IsNotServed(d.Unread) }

func apiServiceUnavailable(d *diagnosis) []Finding {
	name := d.kind().apiService()
	f := Finding{
		Cause:    APIServiceUnavailable,
		Summary:  fmt.Sprintf("the API of %ss (%s) does not answer, so the %s cannot be read or changed", d.kind().Title, name, d.noun()),
		Evidence: []Fact{{Object: d.set(), Text: "cannot be read: " + oneLine(d.Unread.Error())}},
		Commands: []string{"kubectl get apiservice " + name + " -o yaml"},
	}
	if d.APIService == nil {
		if isNotServed(d) {
			f.Summary = fmt.Sprintf("the cluster does not serve %ss: there is no API service %s", d.kind().Title, name)
		}
		return []Finding{f}
	}
	if c := conditionOf(d.APIService, "Available"); c != nil {
		f.Evidence = append([]Fact{conditionFact("apiservice/"+name, c)}, f.Evidence...)
	}
	f.Evidence = append(f.Evidence, d.refusalUnread()...)
	if namespace, _, _ := unstructured.NestedString(d.APIService.Object, "spec", "service", "namespace"); namespace != "" {
		service, _, _ := unstructured.NestedString(d.APIService.Object, "spec", "service", "name")
		f.Evidence = append(f.Evidence, Fact{Object: object("service", service), Text: "serves the group, in the namespace " + namespace})
		f.Commands = append(f.Commands, fmt.Sprintf("kubectl -n %s get pods,endpointslices", namespace),
			fmt.Sprintf("kubectl -n %s describe service %s", namespace, service))
	}
	f.Evidence = append(f.Evidence, d.runsOn()...)
	return []Finding{f}
}

// runsOn is what goes on without the API.
func (d *diagnosis) runsOn() []Fact {
	if len(d.Jobs) == 0 {
		return nil
	}
	up := 0
	for _, pod := range d.Pods {
		if pod.Status.Phase == corev1.PodRunning {
			up++
		}
	}
	return []Fact{{Object: d.set(), Text: fmt.Sprintf("runs on without the API: %s exist, with %s", count(len(d.Jobs), "job"),
		count(up, "running pod"))}}
}

// storeRefused finds that the server refuses to serve its store. The evidence has the paragraph of the server.
func storeRefused(d *diagnosis) []Finding {
	if d.Record == nil || !d.Record.Refusal.Concerns(d.kind().GroupVersion.Group) {
		return nil
	}
	r := d.Record.Refusal
	f := Finding{
		Cause:    StoreRefused,
		Summary:  fmt.Sprintf("%s, so the %s cannot be read or changed", outage.Refused(r, d.Now), d.noun()),
		Evidence: []Fact{{Object: object("configmap", witness.Name), Text: "says: " + oneLine(r.Message), Time: at(r.Time.Time)}},
		Commands: []string{"kubectl jobset doctor"},
	}
	f.Evidence = append(f.Evidence, d.runsOn()...)
	return []Finding{f}
}

// refusalUnread says who knows whether the server refuses, if the user has no permission to read it.
func (d *diagnosis) refusalUnread() []Fact {
	if !d.forbidden(outage.Location) {
		return nil
	}
	return []Fact{{Object: object("configmap", witness.Name),
		Text: "cannot be read by you; it has the reason if the server refuses to serve: ask an administrator of the cluster to run `kubectl " +
			"jobset doctor`"}}
}

const (
	// leaseSlack is added to the duration of a lease before it counts as lost: clocks differ.
	leaseSlack = 5 * time.Second
	// firstStatusGrace is how long the controller may take to write the first status of a set.
	firstStatusGrace = 30 * time.Second
)

// controllerGone looks at the lease of the controller. Without any lease, the set itself shows it: its status was never written.
func controllerGone(d *diagnosis) []Finding {
	if s := d.subject(); s.manager() != "" || s.ended() {
		return nil
	}
	f := Finding{Cause: ControllerNotRunning, Commands: controllerCommands()}
	facts, name, holder := d.lostLeases()
	switch {
	case holder != "":
		return d.controllerNotActing(name, holder)
	case len(facts) > 0:
		f.Summary, f.Evidence = fmt.Sprintf("the controller of %s does not run, so nothing happens to the %s", d.kind().controls, d.noun()), facts
	case d.LeasesRead && d.unobserved():
		f.Summary = fmt.Sprintf("no controller of %s has ever run with leader election, and none has acted on the %s", d.kind().controls,
			d.noun())
		f.Evidence = []Fact{{Object: "lease/" + leaseName, Text: "does not exist in any namespace"}, d.unobservedFact()}
	default:
		return nil
	}
	return []Finding{f}
}

func controllerCommands() []string {
	return []string{fmt.Sprintf("kubectl -n %s get pods,leases", leaseNamespace),
		fmt.Sprintf("kubectl -n %s logs -l control-plane=controller-manager --tail=50", leaseNamespace)}
}

// lostLeases returns the name and the holder of the lease that is held, or else what is wrong with each.
func (d *diagnosis) lostLeases() (facts []Fact, name, holder string) {
	for i := range d.Leases {
		lease := &d.Leases[i]
		name := lease.Namespace + "/lease/" + lease.Name
		holder, renewed := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
		duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second
		switch {
		case holder == "":
			facts = append(facts, Fact{Object: name, Text: "has no holder: the last leader has stopped and no other took over", Time: at(renewed)})
		case d.Now.Sub(renewed) > duration+leaseSlack:
			facts = append(facts, Fact{Object: name, Text: fmt.Sprintf("held by %s, which has not renewed it for %s (it must every %s)", holder,
				span(d.Now, renewed), duration), Time: at(renewed)})
		default:
			return nil, name, holder
		}
	}
	return facts, "", ""
}

func (d *diagnosis) controllerNotActing(lease, holder string) []Finding {
	if !d.unobserved() {
		return nil
	}
	namespace, _, _ := strings.Cut(lease, "/")
	return []Finding{{
		Cause:    ControllerNotActing,
		Summary:  fmt.Sprintf("the controller of %s runs, but has not acted on the %s", d.kind().controls, d.noun()),
		Evidence: []Fact{d.unobservedFact(), {Object: lease, Text: "held by " + holder}},
		Commands: []string{fmt.Sprintf("kubectl -n %s logs -l control-plane=controller-manager --tail=50", namespace)},
	}}
}

// unobserved reports that no controller has acted on the set since it was created, though there was enough time.
func (d *diagnosis) unobserved() bool {
	s := d.subject()
	if d.JobSet != nil && helper.TotalReplicas(d.JobSet) == 0 {
		return false // there is nothing to report about it
	}
	return d.Now.Sub(s.GetCreationTimestamp().Time) > firstStatusGrace && len(d.Jobs) == 0 && len(d.sets()) == 0 &&
		(d.Roles == nil || len(d.Roles.Sets) == 0) && !s.observed()
}

func (d *diagnosis) unobservedFact() Fact {
	return Fact{Object: d.set(), Text: fmt.Sprintf("has no status and no %s since it was created", d.kind().children),
		Time: at(d.subject().GetCreationTimestamp().Time)}
}

// managedElsewhere reports whether the set names another controller than the built-in one.
func managedElsewhere(js *jobsetv1alpha2.JobSet) bool {
	return ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName) != jobsetv1alpha2.JobSetControllerName
}

func notFound(d *diagnosis) []Finding {
	f := Finding{
		Cause: NotFound, Summary: fmt.Sprintf("there is no %s %s in the namespace %s", d.kind().Title, d.Name, d.Namespace),
		Commands: []string{d.kubectl("get %s", d.kind().Names[1])},
	}
	for _, ref := range d.Near {
		f.Evidence = append(f.Evidence, Fact{Object: ref, Text: "exists and has a similar name"})
	}
	for _, namespace := range d.Elsewhere {
		f.Evidence = append(f.Evidence, Fact{Object: namespace + "/" + d.set(), Text: "exists in the namespace " + namespace})
		f.Commands = append(f.Commands, fmt.Sprintf("kubectl jobset -n %s why %s", namespace, d.ref()))
	}
	if len(d.Near) > 0 && len(d.Elsewhere) == 0 {
		f.Commands = append(f.Commands, d.plugin("why %s", d.Near[0]))
	}
	if len(d.Jobs) > 0 {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf("was deleted; %s with its name still exist",
			count(len(d.Jobs), "job"))})
	}
	return []Finding{f}
}
