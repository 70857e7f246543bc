// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

// report says what a migration would do. Nothing is changed but the route of the migration API, or the version through which
// CustomResourceDefinitions take objects, for as long as it is asked whether the objects are accepted.
func (m *mover) report(ctx context.Context, direction Direction) error {
	journal, err := readJournal(ctx, m.kube)
	switch {
	case err != nil:
		return err
	case journal != nil && journal.Ended == nil:
		return fmt.Errorf("migration %s %s has begun and has not ended: run kubectl jobset migrate status", journal.ID, journal.Direction)
	}
	if err := m.find(ctx, direction); err != nil {
		return err
	}
	if len(m.subjects) == 0 {
		fmt.Fprintln(m.out, nothing[direction])
		return nil
	}
	if err := m.reportPermissions(ctx); err != nil {
		return err
	}
	open, look, shut := m.router.openMigration, m.reportObjects, m.router.closeMigration
	if direction == ToServer {
		err = m.reportControllers(ctx)
	} else {
		m.reportRestored(journal)
		open = func(ctx context.Context) error { return m.openReturn(ctx, nil) }
		look = m.reportReturn
		shut = func(ctx context.Context) error { return m.closeReturn(ctx, nil) }
	}
	if err != nil {
		return err
	}
	if err := open(ctx); err != nil {
		return err
	}
	return errors.Join(look(ctx), shut(context.WithoutCancel(ctx)))
}

// reportObjects says how many objects there are, which of them jobset-apiserver does not accept, who else writes them, and what
// their users will notice.
func (m *mover) reportObjects(ctx context.Context) error {
	began := m.clock.Now()
	err := m.each(func(s subject) error {
		var seen notices
		c := m.copier(s, true)
		c.seen = seen.of
		got, err := c.run(ctx)
		if err != nil {
			return err
		}
		rejected := rejections(got)
		fmt.Fprintf(m.out, "%s: %d objects, of which jobset-apiserver does not accept %d\n", s.definition(), got.objects(), len(rejected))
		for _, r := range rejected {
			fmt.Fprintf(m.out, "  %s/%s: %s\n", r.Namespace, r.Name, r.Message)
		}
		seen.print(m.out)
		return nil
	})
	if err != nil {
		return err
	}
	m.reportFreeze(began, 4) // once in the step copy and twice in the step compare; the writes take about as long
	return nil
}

// reportReturn says which objects the CustomResourceDefinitions do not accept, what they lose there, and which get another UID.
func (m *mover) reportReturn(ctx context.Context) error {
	began := m.clock.Now()
	err := m.each(func(s subject) error {
		var seen notices
		g := m.giver(s, true)
		g.lost = func(name types.NamespacedName, fields []string) {
			seen.add("lose what the CustomResourceDefinition does not know, "+strings.Join(fields, ", "), name.Namespace, name.Name)
		}
		got, err := g.run(ctx)
		if err != nil {
			return err
		}
		for name, problem := range got.problems {
			if errors.Is(problem, errOnlyThere) {
				seen.add("are deleted in the CustomResourceDefinition: jobset-apiserver does not have them any more", name.Namespace, name.Name)
			}
		}
		for _, name := range got.created {
			seen.add("get another UID, because they were created in jobset-apiserver", name.Namespace, name.Name)
		}
		dropDifferences(got)
		fmt.Fprintf(m.out, "%s: %d objects, of which the CustomResourceDefinition does not accept %d\n",
			s.definition(), got.objects, len(got.problems))
		if len(got.problems) > 0 {
			fmt.Fprintf(m.out, "  %s\n", got.describe(s))
		}
		seen.print(m.out)
		return nil
	})
	if err != nil {
		return err
	}
	m.reportFreeze(began, 2) // in the step compare; most objects are written before, and lists take less
	return nil
}

// reportFreeze estimates the freeze by how long it took to read and compare all objects, and how often that happens in it.
func (m *mover) reportFreeze(began time.Time, times int) {
	freeze := time.Duration(times)*m.clock.Since(began) + 2*otherServers + 5*time.Second
	fmt.Fprintf(m.out, "Writes would be refused for about %s.\n", freeze.Round(time.Second))
}

// reportRestored names what a migration to the server has saved, which the way back restores.
func (m *mover) reportRestored(journal *Journal) {
	if journal == nil || len(journal.Saved)+len(journal.Replicas) == 0 {
		fmt.Fprintln(m.out, "No webhook configuration and no Deployment of another controller was saved: install that controller again yourself.")
		return
	}
	for _, saved := range slices.Sorted(maps.Keys(journal.Saved)) {
		kind, name, _ := strings.Cut(saved, ".")
		fmt.Fprintf(m.out, "Would create the %s webhook configuration %s again\n", kind, name)
	}
	for _, name := range slices.Sorted(maps.Keys(journal.Replicas)) {
		fmt.Fprintf(m.out, "Would scale Deployment %s to %d\n", name, journal.Replicas[name])
	}
}

// rejections are the objects that jobset-apiserver does not accept.
func rejections(got *copied) []migration.Result {
	return slices.DeleteFunc(slices.Clone(got.problems), func(r migration.Result) bool { return r.Verdict != migration.Rejected })
}

// managers says who writes an object, besides its users.
func managers(labels, annotations map[string]string) (found []string) {
	for _, m := range []struct {
		of   map[string]string
		key  string
		text string
	}{
		{annotations, "meta.helm.sh/release-name", "belong to Helm releases"},
		{annotations, "argocd.argoproj.io/tracking-id", "are reconciled by Argo CD: it is refused while writes are, and tries again"},
		{labels, "argocd.argoproj.io/instance", "are reconciled by Argo CD: it is refused while writes are, and tries again"},
		{labels, "kustomize.toolkit.fluxcd.io/name", "are reconciled by Flux: it is refused while writes are, and tries again"},
		{labels, "helm.toolkit.fluxcd.io/name", "are reconciled by Flux: it is refused while writes are, and tries again"},
		{labels, "kueue.x-k8s.io/queue-name", "are in queues of Kueue: it admits none of them while writes are refused"},
	} {
		if m.of[m.key] != "" && !slices.Contains(found, m.text) {
			found = append(found, m.text)
		}
	}
	return found
}

// reportControllers names what would be stopped and removed.
func (m *mover) reportControllers(ctx context.Context) error {
	hooks, err := findHooks(ctx, m.kube, m.groups())
	if err != nil {
		return err
	}
	for _, h := range hooks {
		fmt.Fprintf(m.out, "Would save and delete the %s webhook configuration %s\n", h.kind, h.name)
		for _, service := range h.services {
			behind, err := deploymentsBehind(ctx, m.kube, service)
			if err != nil {
				return err
			}
			for i := range behind {
				d := &behind[i]
				fmt.Fprintf(m.out, "Would scale Deployment %s/%s (%s) to 0%s\n", d.Namespace, d.Name, images(d), installer(d.Labels, d.Annotations))
			}
		}
	}
	return nil
}

// images are the images of a Deployment, which say its version.
func images(d *appsv1.Deployment) string {
	var names []string
	for _, c := range d.Spec.Template.Spec.Containers {
		names = append(names, c.Image)
	}
	return strings.Join(names, ", ")
}

// installer says who would undo a change of an installation.
func installer(labels, annotations map[string]string) string {
	switch release := annotations["meta.helm.sh/release-name"]; {
	case release != "":
		return ": it belongs to the Helm release " + release + ", whose next upgrade would start it again"
	case len(managers(labels, annotations)) > 0:
		return ": something reconciles it, and would start it again; stop that first"
	}
	return ""
}

// needed are permissions for what a migration does, as verb, resource and group.
var needed = []struct{ group, resource, verbs string }{
	{"apiregistration.k8s.io", "apiservices", "get create update patch delete"},
	{"apiextensions.k8s.io", "customresourcedefinitions", "get update"},
	{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get list create update delete"},
	{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "get list create delete"},
	{"admissionregistration.k8s.io", "validatingadmissionpolicies", "get create update delete"},
	{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", "get create delete"},
	{"apps", "deployments", "get list"},
	{"apps", "deployments/scale", "get update"},
	{"batch", "jobs", "get create delete"},
	{"coordination.k8s.io", "leases", "get create update"},
	{"", "configmaps", "get create update"},
	{"", "resourcequotas", "get create update delete"},
	{"", "services", "get patch"},
	{"", "pods", "list"},
	{migration.Group, "imports", "create"},
	{migration.Group, "inventories", "get"},
}

// reportPermissions names those that the user does not have.
func (m *mover) reportPermissions(ctx context.Context) error {
	for _, n := range needed {
		resource, subresource, _ := strings.Cut(n.resource, "/")
		for _, verb := range strings.Fields(n.verbs) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: n.group, Resource: resource, Subresource: subresource, Verb: verb},
			}}
			answer, err := m.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("asking for your permissions: %w", err)
			}
			if !answer.Status.Allowed {
				fmt.Fprintf(m.out, "You are not allowed to %s %s%s: ask an administrator of the cluster\n", verb, n.resource, suffixed(n.group))
			}
		}
	}
	return nil
}

func suffixed(group string) string {
	if group == "" {
		return ""
	}
	return "." + group
}
