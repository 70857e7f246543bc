// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/artifacts/base/rbac"
	podgroups "github.com/jobset-apiserver/jobset-apiserver/artifacts/components/pod-groups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// reviewsAtOnce is how many reviews are under way at a time for one program.
const reviewsAtOnce = 10

// serverRights checks that the server may do what its manifests allow.
func serverRights(ctx context.Context, p *inspection) finding {
	manifest := rbac.Server
	if p.managed() != "" {
		manifest += "\n---\n" + rbac.Serving
	}
	return p.rights(ctx, accountOf(p.servers, "jobset-apiserver"), manifest)
}

// managed is a pod of the server that makes its own certificate and writes its authority into caBundle; "" if there is none.
func (p *inspection) managed() string {
	for i := range p.servers {
		for _, container := range p.servers[i].Spec.Containers {
			if slices.ContainsFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, "--tls-managed-secret=") }) {
				return p.servers[i].Name
			}
		}
	}
	return ""
}

// controllerRights checks that the controller may do what its manifests allow.
func controllerRights(ctx context.Context, p *inspection) finding {
	manifest := rbac.Controller
	if p.servesLeaderWorkerSets() {
		manifest += "\n---\n" + rbac.LeaderWorkerSets
	}
	account := accountOf(p.controllers, "jobset-controller-manager")
	f := p.rights(ctx, account, manifest)
	for _, component := range []struct {
		uses          bool
		manifest, fix string
	}{{p.makesPodGroups(), podgroups.Controller, applyPodGroups}, {p.writesEndpoints(), rbac.Endpoints, applyRoles}} {
		if f.status != OK || !component.uses {
			continue
		}
		if lacks := p.rights(ctx, account, component.manifest); lacks.status != OK {
			f, f.fix = lacks, component.fix
		}
	}
	return f
}

// writesEndpoints returns whether the controller writes addresses of Services without being asked by a set, which is the default.
func (p *inspection) writesEndpoints() bool {
	return !p.controllerHas(func(arg string) bool { return arg == "--service-endpoints=cluster" })
}

// makesPodGroups returns whether a pod of the controller makes PodGroups for a scheduler.
func (p *inspection) makesPodGroups() bool {
	return p.controllerHas(func(arg string) bool {
		return strings.HasPrefix(arg, "--gang-scheduling-provider=") ||
			strings.HasPrefix(arg, "--feature-gates=") && strings.Contains(arg, "JobSetWorkloadAwareSchedulingAPI=true")
	})
}

// controllerHas returns whether a pod of the controller has a flag.
func (p *inspection) controllerHas(flag func(string) bool) bool {
	return slices.ContainsFunc(p.controllers, func(pod corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return slices.ContainsFunc(c.Args, flag) })
	})
}

// accountOf is the service account of pods, or else the service account in the manifests.
func accountOf(pods []corev1.Pod, name string) string {
	if len(pods) > 0 && pods[0].Spec.ServiceAccountName != "" {
		return pods[0].Spec.ServiceAccountName
	}
	return name
}

// rights asks kube-apiserver about each permission of a manifest.
func (p *inspection) rights(ctx context.Context, account, manifest string) finding {
	wanted, err := permissions(manifest)
	if err != nil {
		return finding{status: Warn, message: err.Error()} // tests read both manifests
	}
	var mu sync.Mutex
	var lacking []string
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for _, attributes := range wanted {
		if attributes.Namespace == helper.ControllerNamespace {
			attributes.Namespace = p.namespace
		}
		group.Go(func() error {
			allowed, err := p.allowed(ctx, account, attributes)
			if err == nil && !allowed {
				mu.Lock()
				defer mu.Unlock()
				lacking = append(lacking, describe(&attributes))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return unseen("what others may do (SubjectAccessReview)", err)
	}
	if len(lacking) == 0 {
		return good("%s has the %d permissions of its manifests", account, len(wanted))
	}
	slices.Sort(lacking)
	return finding{status: Fail, certain: true, message: fmt.Sprintf("%s lacks %s of its manifests: %s", p.userOf(account),
		cli.Count(len(lacking), "permission"), shorten(lacking)), fix: applyRoles}
}

// userOf is the name by which kube-apiserver knows a service account of the programs.
func (p *inspection) userOf(account string) string {
	return "system:serviceaccount:" + p.namespace + ":" + account
}

// allowed asks kube-apiserver whether a service account of the programs has a permission.
func (p *inspection) allowed(ctx context.Context, account string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: p.userOf(account), ResourceAttributes: &attributes,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + p.namespace, "system:authenticated"},
	}}
	review, err := p.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}

// describe names a permission.
func describe(a *authorizationv1.ResourceAttributes) string {
	what := a.Resource
	if a.Group != "" {
		what += "." + a.Group
	}
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	if a.Name != "" {
		what += " " + a.Name
	}
	if a.Namespace != "" {
		what += " in " + a.Namespace
	}
	return a.Verb + " " + what
}
