// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"
)

// finding is what a check has found.
type finding struct {
	status  Status
	message string
	// fix is a command, or a sentence if no command repairs it; empty if nothing is to be done.
	fix string
	// certain says that the check has seen the cause itself, so that no other check explains it.
	certain bool
	// cause is the check that knows why this one is skipped.
	cause string
}

func good(format string, values ...any) finding {
	return finding{status: OK, message: fmt.Sprintf(format, values...)}
}

func unknown(format string, values ...any) finding {
	return finding{status: Skip, message: fmt.Sprintf(format, values...)}
}

// unseen is the finding of a check whose source could not be read.
func unseen(what string, err error) finding {
	status, message := unread(what, err)
	return finding{status: status, message: message, certain: true}
}

// check looks at one hop, or at one thing that an administrator should know. It says everything with its finding, also
// that it could not look.
type check struct {
	name string
	run  func(context.Context, *inspection) finding
	// needs are the checks without whose success this one says nothing about its own subject.
	needs []string
}

// unseenHere is unseen for what is in the namespace of the programs.
func unseenHere(what string, err error) finding {
	f := unseen(what, err)
	f.message = strings.Replace(f.message, "the ClusterRole jobset-doctor grants it",
		"the Role jobset-doctor in the namespace of the programs grants it", 1)
	return f
}

const (
	// applyRoles repairs what may be done, and applyServices, applyWebhook and applyFlows the other objects of the installation.
	applyRoles     = "kubectl apply -k artifacts/base/rbac"
	applyPodGroups = "kubectl apply -f artifacts/components/pod-groups/rbac.yaml"
	applyServices  = "kubectl apply -f artifacts/base/apiservice.yaml"
	applyWebhook   = "kubectl apply -f artifacts/base/webhook.yaml"
)

// checks are all checks, in the order of the hops from the client to the store and back. The first one that fails is the first broken hop.
var checks = []check{
	{"kube-apiserver", kubeAPIServer, nil},
	{"registered", repaired(registered, applyServices), []string{"kube-apiserver"}},
	{"crd", definitions, []string{"kube-apiserver"}},
	{"server-rights", serverRights, []string{"kube-apiserver"}},
	{"service", serviceExists, []string{"registered"}},
	{"pods", serverPods, []string{"service", "server-rights"}},
	{"store", storeServed, []string{"kube-apiserver"}},
	{"endpoints", endpoints, []string{"service", "pods", "store"}},
	{"certificate", certificate, []string{"registered", "service", "pods", "store", "endpoints"}},
	{"available", reached, []string{"registered", "service", "server-rights", "pods", "store", "endpoints", "certificate"}},
	{"server", server, []string{"available", "server-rights"}},
	{"etcd", etcd, []string{"available", "server"}},
	{"questions", questions, []string{"available", "server-rights", "server"}},
	{"webhook", certifiedWebhook, []string{"kube-apiserver", "registered"}},
	{"other-webhooks", otherWebhooks, []string{"kube-apiserver"}},
	{"policies", policyParams, []string{"kube-apiserver"}},
	{"controller-rights", controllerRights, []string{"kube-apiserver"}},
	{"controller", controller, []string{"controller-rights"}},
	{"versions", versions, []string{"available", "server", "controller"}},
	{"gates", gates, []string{"available", "server", "controller"}},
	{"flow-schemas", flowSchemas, []string{"kube-apiserver"}},
	{"clocks", clocks, []string{"kube-apiserver"}},
	{"lost-owners", repaired(lostOwners, ""), []string{"kube-apiserver"}},
	{"acceptance", repaired(acceptance, ""), []string{"kube-apiserver"}},
	{"restore", repaired(restore, ""), []string{"kube-apiserver"}},
	{"held", repaired(held, ""), []string{"kube-apiserver"}},
	{"budgets", budgets, []string{"kube-apiserver"}},
}

// repaired is a check with a command that repairs what it finds.
func repaired(find func(context.Context, *inspection) (Status, string), fix string) func(context.Context, *inspection) finding {
	return func(ctx context.Context, p *inspection) finding {
		status, message := find(ctx, p)
		f := finding{status: status, message: message}
		if status == Fail {
			f.fix = fix
		}
		return f
	}
}

// resultsOf makes results of findings: a check is skipped if one that it needs has failed, unless all is well or it has
// seen the cause itself.
func resultsOf(findings []finding) (results []Result, first string) {
	broken := map[string]string{}
	for i, c := range checks {
		f := findings[i]
		cause := ""
		for _, need := range c.needs {
			if cause = broken[need]; cause != "" {
				break
			}
		}
		if cause != "" && f.status != OK && !f.certain {
			f = unknown("cannot be judged before %s is repaired", cause)
		}
		switch {
		case f.status == Fail:
			broken[c.name] = c.name
			if first == "" {
				first = c.name
			}
		case f.status == Skip && cause != "":
			broken[c.name] = cause
		case f.cause != "":
			broken[c.name] = f.cause
		}
		results = append(results, Result{Name: c.name, Status: f.status, Message: f.message, Fix: f.fix})
	}
	return results, first
}
