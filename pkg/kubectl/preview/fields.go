// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"regexp"
	"strings"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// locator returns the field of the user's JobSet for that of a child, from which the server's answer speaks. The field is "" for an answer
// that names none.
type locator func(field string) string

// sameField is the locator of answers about the JobSet itself.
func sameField(field string) string { return field }

// jobField is the locator of the Jobs of the replicatedJob at that place.
func jobField(i int) locator {
	path := fmt.Sprintf("spec.replicatedJobs[%d]", i)
	return func(field string) string {
		switch field {
		case "":
			return path
		case "metadata.name", "metadata.generateName":
			return path + ".name"
		}
		return path + ".template." + field
	}
}

// podField is the locator of the pods of the replicatedJob at that place.
func podField(i int) locator { return podOf(jobField(i)) }

// podOf is the locator of the pods of a Job.
func podOf(job locator) locator {
	return func(field string) string { return job(strings.TrimSuffix("spec.template."+field, ".")) }
}

// serviceField is the locator of the Service.
func serviceField(string) string { return "spec.network" }

// claimField is the locator of the claim of that name.
func claimField(js *jobsetv1alpha2.JobSet, name string) locator {
	path := "spec.volumeClaimPolicies"
	for i := range js.Spec.VolumeClaimPolicies {
		for j := range js.Spec.VolumeClaimPolicies[i].Templates {
			if helper.ClaimName(js.Name, js.Spec.VolumeClaimPolicies[i].Templates[j].Name) == name {
				path = fmt.Sprintf("spec.volumeClaimPolicies[%d].templates[%d]", i, j)
			}
		}
	}
	return func(field string) string { return strings.TrimSuffix(path+"."+field, ".") }
}

// forbidden is how admission begins its answers.
var forbidden = regexp.MustCompile(`^[a-z.]+ "[^"]*" is forbidden: `)

// The answers of admission that name what a pod lacks, with its name and the field of the pod.
var (
	noServiceAccount = regexp.MustCompile(`serviceaccount "([^"]+)" not found`)
	noPriorityClass  = regexp.MustCompile(`no PriorityClass with name (\S+) was found`)
	noRuntimeClass   = regexp.MustCompile(`RuntimeClass "([^"]+)" not found`)
)

var lacking = []struct {
	pattern *regexp.Regexp
	field   string
}{
	{noServiceAccount, "spec.serviceAccountName"}, {noPriorityClass, "spec.priorityClassName"}, {noRuntimeClass, "spec.runtimeClassName"},
	{regexp.MustCompile(`violates PodSecurity`), "spec"}, {regexp.MustCompile(` usage per Container`), "spec.containers"},
}

// locatedMessage returns an answer that names no field with the field that it is about, as far as that is known.
func (where locator) locatedMessage(message string) string {
	rest := forbidden.ReplaceAllString(message, "")
	field := ""
	for _, known := range lacking {
		if known.pattern.MatchString(rest) {
			field = known.field
		}
	}
	if place := where(field); place != "" {
		return place + ": " + rest
	}
	return message
}

// fieldInText is a text that begins with a field, as warnings do.
var fieldInText = regexp.MustCompile(`^((?:spec|metadata)[.\[][^\s:]*): `)

// locatedWarning returns a warning with the field of the user's JobSet, if it begins with a field.
func (where locator) locatedWarning(text string) string {
	if found := fieldInText.FindStringSubmatch(text); found != nil {
		return where(found[1]) + strings.TrimPrefix(text, found[1])
	}
	return text
}
