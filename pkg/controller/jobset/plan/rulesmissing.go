// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// Containers restart in place by rules of their own. A kube-apiserver that does not know these rules leaves them out of the Jobs, without
// an error, so that nothing shows it but the Jobs themselves.

const (
	reasonRulesMissing = "ContainerRestartRulesMissing"
	reasonRulesStored  = "ContainerRestartRulesStored"
	messageRulesStored = "the Jobs have the restart rules of their containers"
	beforeContainer    = "kube-apiserver has left out the restart rules of container "
	missingRulesOf     = "%s of Job %s, so that its pods are recreated when they fail: " +
		"the feature gate ContainerRestartRules of kube-apiserver is off, or it is older than 1.35"
)

// LostRules returns the name of the first container of a Job to create that has restart rules and lacks them as the API has stored the
// Job; empty if none does.
func LostRules(job, stored *batchv1.Job) string {
	spec, its := &job.Spec.Template.Spec, &stored.Spec.Template.Spec
	have := slices.Concat(its.InitContainers, its.Containers)
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if len(container.RestartPolicyRules) == 0 {
			continue
		}
		if i := slices.IndexFunc(have, func(c corev1.Container) bool { return c.Name == container.Name }); i >= 0 &&
			len(have[i].RestartPolicyRules) == 0 {
			return container.Name
		}
	}
	return ""
}

// MissingRules is a container that lacks its restart rules.
type MissingRules struct {
	// Job and Container are its name and that of its Job.
	Job, Container string
}

// noted returns whether the status may have to show what became of the restart rules.
func (m *MissingRules) noted(status *jobsetv1alpha2.JobSetStatus) bool {
	return m != nil || current(status, jobsetv1alpha2.RestartRulesMissing) != nil
}

// rulesMissing returns whether the Jobs that were created have the restart rules of their containers. The message names one of many
// containers, and stays.
func rulesMissing(o Observed, r Results) []hostplan.Trouble {
	switch {
	case !inplace.Restarts(o.JobSet, o.Gates):
	case r.MissingRules != nil:
		message := beforeContainer + fmt.Sprintf(missingRulesOf, r.MissingRules.Container, r.MissingRules.Job)
		return []hostplan.Trouble{
			{Type: jobsetv1alpha2.RestartRulesMissing, Reason: reasonRulesMissing, Message: message, Head: beforeContainer},
		}
	case slices.Contains(r.Creations, Created):
		return []hostplan.Trouble{over(jobsetv1alpha2.RestartRulesMissing, reasonRulesStored, messageRulesStored)}
	}
	return nil
}
