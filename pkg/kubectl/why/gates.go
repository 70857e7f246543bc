// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Kinds that a feature gate turns on: the server does not serve them without it, and the controller does not act on them.

// gateOfRoles is the feature gate of DisaggregatedSets.
const gateOfRoles = string(features.DisaggregatedSet)

// gatesPath is the path of the document with the feature gates of the server.
var gatesPath = path.Join("/apis", cli.JobSet.GroupVersion.String(), "featuregates")

// readGates reads the feature gates of the server, if one of them may be why the object could not be read. Other
// servers of JobSets do not report their gates.
func (l *loader) readGates(ctx context.Context) {
	if l.e.kind().gate == "" || l.document == nil {
		return
	}
	content, err := l.document(ctx, gatesPath)
	if err != nil {
		return
	}
	var found struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if json.Unmarshal(content, &found) == nil {
		l.e.ServerGates = found.FeatureGates
	}
}

// documentOf returns the function that reads a document of the API server; nil for clients that have no connection.
func documentOf(c *cli.Clients) func(context.Context, string) ([]byte, error) {
	if c.Discovery == nil || c.Discovery.RESTClient() == nil {
		return nil
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		return c.Discovery.RESTClient().Get().AbsPath(path).Do(ctx).Raw()
	}
}

// gateOff reports that the feature gate of the kind is off in the server, which then does not serve it, or in the
// controller, which then does not act on it.
func gateOff(d *diagnosis) []Finding {
	gate := d.kind().gate
	f := Finding{Cause: FeatureGateOff, Commands: []string{
		"kubectl jobset doctor",
		fmt.Sprintf("kubectl -n %s get deployments,statefulsets -o yaml | grep feature-gates  # and turn on %s in both programs", leaseNamespace,
			gate),
	}}
	if d.subject() == nil {
		if on, known := d.ServerGates[gate]; !known || on {
			return nil
		}
		f.Summary = fmt.Sprintf("%ss are turned off: jobset-apiserver runs without the feature gate %s, and serves none", d.kind().Title, gate)
		f.Evidence = []Fact{{Object: "server", Text: fmt.Sprintf("%s says that %s is off", gatesPath, gate)}}
		return []Finding{f}
	}
	_, held, holder := d.lostLeases()
	if holder == "" || !d.outOfDate() {
		return nil
	}
	for i := range d.Leases {
		lease := &d.Leases[i]
		if on, known := helper.ControllerGates(lease.Labels)[gate]; known && !on && lease.Namespace+"/lease/"+lease.Name == held {
			f.Summary = fmt.Sprintf("jobset-controller runs without the feature gate %s, so nothing happens to the %s", gate, d.noun())
			f.Evidence = []Fact{{Object: held, Text: fmt.Sprintf("held by %s, with the label that %s is off", holder, gate)}, {
				Object: d.set(), Text: fmt.Sprintf("has the generation %d, of which a controller has observed %d", d.RolesSet.Generation,
					d.RolesSet.Status.ObservedGeneration),
			}}
			return []Finding{f}
		}
	}
	return nil
}

// outOfDate returns whether no controller has acted on the object as it is now, although there was enough time since its creation.
func (d *diagnosis) outOfDate() bool {
	set := d.RolesSet
	return set != nil && set.Status.ObservedGeneration < set.Generation && d.Now.Sub(set.CreationTimestamp.Time) > firstStatusGrace
}

// controllerOfGate looks at the controller, which does not act if its feature gate is off.
func controllerOfGate(d *diagnosis) []Finding {
	if found := gateOff(d); found != nil {
		return found
	}
	return controllerGone(d)
}
