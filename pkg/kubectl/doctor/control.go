// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	componentversion "k8s.io/component-base/version"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/version"
)

// tolerance is how much later than it must, a controller may renew its lease before it is taken for gone. Its clock may be behind.
const tolerance = 30 * time.Second

// oneProgram are the feature gates that have an effect in one of the programs only.
var oneProgram = map[string]bool{"SequentialJobWorkload": true, "RestartOnFailureTarget": true}

// controller checks that a controller works: it holds the lease and renews it.
func controller(_ context.Context, p *inspection) finding {
	name := "lease " + p.namespace + "/" + helper.ControllerLease
	var f finding
	switch {
	case apierrors.IsNotFound(p.leaseErr):
		f = finding{status: Fail, certain: true, message: fmt.Sprintf("there is no %s, so no controller has ever worked here", name)}
	case p.leaseErr != nil:
		return unseenHere(name, p.leaseErr)
	default:
		if f = p.holds(name); f.status == OK {
			return f
		}
	}
	f.fix = fmt.Sprintf("kubectl -n %s get pods -l %s=%s", p.namespace, nameLabel, controllerName)
	if pods, _ := p.checkPods(controllerName, p.controllers); p.podsErr == nil && pods.status == Fail {
		f.message, f.fix = f.message+"; "+pods.message, pods.fix
	}
	return f
}

// holds checks whether a controller holds the lease now.
func (p *inspection) holds(name string) finding {
	spec := p.lease.Spec
	holder := ptr.Deref(spec.HolderIdentity, "")
	if holder == "" || spec.RenewTime == nil {
		return finding{status: Fail, certain: true, message: fmt.Sprintf("no controller holds the %s, so that none works", name)}
	}
	host, _, _ := strings.Cut(holder, "_")
	limit := time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 15))*time.Second + tolerance
	if age := p.clock().Sub(spec.RenewTime.Time); age > limit {
		return finding{status: Fail, certain: true, message: fmt.Sprintf("no controller works: %s, which held the %s, renewed it %s", host, name,
			cli.Ago(p.clock(), spec.RenewTime.Time))}
	}
	where := "outside of namespace " + p.namespace
	for i := range p.controllers {
		if p.controllers[i].Name == host {
			where = "on node " + p.controllers[i].Spec.NodeName
		}
	}
	return good("%s holds the lease, %s", host, where)
}

// versions checks that plugin, server and controller are near enough to each other.
func versions(_ context.Context, p *inspection) finding {
	found := &version.Versions{Client: componentversion.Get().GitVersion}
	if p.health != nil {
		found.Server = p.health.Version
	}
	if p.lease != nil {
		found.Controller = helper.ControllerVersion(ptr.Deref(p.lease.Spec.HolderIdentity, ""))
	}
	switch warnings := version.Skew(found); {
	case found.Server == "":
		return unknown("the version of the server is not known")
	case len(warnings) > 0:
		return finding{status: Warn, message: strings.Join(warnings, "; "), fix: "kubectl -n " + p.namespace +
			" get deployments,statefulsets -o wide   # and give both programs images of one release"}
	case found.Controller == "":
		return good("server %s, plugin %s; the version of the controller is not known", found.Server, found.Client)
	}
	return good("server %s, controller %s, plugin %s", found.Server, found.Controller, found.Client)
}

// gates checks that both programs have the same feature gates.
func gates(_ context.Context, p *inspection) finding {
	if p.health == nil {
		return unknown("the feature gates of the server are not known")
	}
	if p.lease == nil {
		return unknown("the feature gates of the controller are not known")
	}
	states := helper.ControllerGates(p.lease.Labels)
	if len(states) == 0 {
		return unknown("the controller does not say which feature gates are on")
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if on, known := p.health.FeatureGates[name]; known && on != states[name] && !oneProgram[name] {
			differ = append(differ, fmt.Sprintf("%s is %s in the server and %s in the controller", name, word(on), word(states[name])))
		}
	}
	if len(differ) > 0 {
		return finding{status: Warn, message: "feature gates differ: " + strings.Join(differ, "; "),
			fix: "kubectl -n " + p.namespace + " get deployments,statefulsets -o yaml | grep feature-gates   # and give both programs the same"}
	}
	return good("both programs have the same feature gates")
}

func word(on bool) string { return map[bool]string{true: "on", false: "off"}[on] }
