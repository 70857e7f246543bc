// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

const (
	// maxUse is the part of the quota of etcd, in percent, from which an administrator should act.
	maxUse = 80
	// slowEtcd is the latency of etcd, in milliseconds, from which it holds everything up.
	slowEtcd = 500
	// oldServer is what a server says that does not have the document.
	oldServer = "jobset-apiserver is older than this plugin and says nothing about itself"
)

// storeServed checks whether a server refuses its store. A refusal that is not confirmed any more explains nothing if the pods do not run.
func storeServed(ctx context.Context, p *inspection) finding {
	fix := "kubectl -n kube-system get configmap jobset-apiserver-store -o yaml   # its refusal says what to do"
	if len(p.lost()) > 0 {
		fix = "kubectl -n " + p.namespace + " get pods,pvc -o wide   # put the right volumes back, or restore: docs/operations/backup.md#restore"
	}
	f := repaired(store, fix)(ctx, p)
	if f.status != Fail {
		return f
	}
	if pods, unready := p.checkPods(serverName, p.servers); !p.refuses() && pods.status == Fail && pods.certain && unready == nil &&
		len(p.servers) > 0 && !p.external() {
		f.status, f.fix = Warn, ""
	}
	f.certain = true
	return f
}

// server checks what the server says about its own readiness.
func server(_ context.Context, p *inspection) finding {
	if p.health == nil {
		return p.silent()
	}
	if n := p.health.UnreadableCount; len(p.health.Unreadable) > 0 && len(p.health.Unready) == 0 {
		return unreadable(p, n)
	}
	if len(p.health.Unready) == 0 {
		return good("%s is ready", p.health.Server)
	}
	if !slices.ContainsFunc(p.health.Unready, func(c selfcheck.Problem) bool { return !slices.Contains(etcdChecks, c.Name) }) {
		f := unknown("%s is not ready; the check etcd says why", p.health.Server)
		f.cause = "etcd"
		return f
	}
	return finding{status: Fail, message: fmt.Sprintf("%s is not ready: %s", p.health.Server, problems(p.health.Unready)),
		fix: p.logs(p.health.Server)}
}

// unreadable is the finding about objects in the store that the server cannot read.
func unreadable(p *inspection, count int) finding {
	first := p.health.Unreadable[0]
	f := finding{status: Warn, certain: true}
	f.message = fmt.Sprintf("%s cannot read some objects in its store: %d, such as %s: %s", p.health.Server, count, first.Key, first.Cause)
	f.fix = "jobset-apiserver store export FILE --key=" + first.Key + "   # then repair it, or: jobset-apiserver store remove --key=" +
		first.Key
	return f
}

// logs is a command that shows the log of the server.
func (p *inspection) logs(pod string) string {
	for i := range p.servers {
		if p.servers[i].Name == pod {
			return fmt.Sprintf("kubectl -n %s logs %s --tail=20", p.namespace, pod)
		}
	}
	return fmt.Sprintf("kubectl -n %s logs -l %s=%s --tail=20", p.namespace, nameLabel, serverName)
}

// silent is the finding if the server says nothing about itself.
func (p *inspection) silent() finding {
	err := p.healthErr
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return finding{status: Warn, message: oldServer, certain: true}
	case says(err.Error(), "subjectaccessreviews") != "":
		return finding{status: Fail, certain: true, message: fmt.Sprintf("the server may not ask kube-apiserver what a user may do: %v", err),
			fix: applyRoles}
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return unseen("what the server says about itself (serverhealth.jobset.x-k8s.io)", err)
	case outage.Concerns(err):
		return unknown("the server says nothing about itself: %v", err)
	}
	return finding{status: Fail, message: fmt.Sprintf("the server does not say how it is: %v", err), fix: p.logs("")}
}

func problems(list []selfcheck.Problem) string {
	var texts []string
	for _, problem := range list[:min(len(list), maxNamed)] {
		texts = append(texts, problem.Name+" ("+problem.Message+")")
	}
	return strings.Join(texts, "; ")
}

// space checks the room of the members that answer, and how fast they do.
func (p *inspection) space() finding {
	var worst selfcheck.Member
	var slow int64
	use := func(m selfcheck.Member) int64 { return 100 * m.InUseBytes / max(m.QuotaBytes, 1) }
	const compact = "kubectl delete jobsets --all-namespaces --field-selector=…   # finished sets; or a larger quota: docs/operations"
	for _, m := range p.health.Etcd {
		if m.Error != "" {
			continue
		}
		if len(m.Alarms) > 0 {
			return finding{status: Fail, certain: true, message: fmt.Sprintf("etcd at %s has the alarm %s", m.Endpoint,
				strings.Join(m.Alarms, ", ")), fix: compact}
		}
		if worst.Endpoint == "" || m.QuotaBytes > 0 && use(m) > use(worst) {
			worst = m
		}
		slow = max(slow, m.LatencyMicroseconds/1000)
	}
	room := fmt.Sprintf("%s of its file in use", megabytes(worst.InUseBytes))
	if worst.QuotaBytes > 0 {
		room = fmt.Sprintf("%d%% of its quota of %s in use", use(worst), megabytes(worst.QuotaBytes))
	}
	where := fmt.Sprintf("%s (%d members)", p.etcdName(), len(p.health.Etcd))
	if p.health.Embedded {
		where = "the embedded etcd"
	}
	switch {
	case worst.QuotaBytes > 0 && use(worst) >= maxUse:
		return finding{status: Warn, message: fmt.Sprintf("etcd at %s is nearly full: %s; when it is full, nothing can be created or changed",
			worst.Endpoint, room), fix: compact}
	case slow >= slowEtcd:
		return finding{status: Warn, message: fmt.Sprintf("%s takes %d ms to answer; its disk or its network is slow", where, slow)}
	}
	return good("%s %s answers in %d ms, with %s", where, worst.Version, slow, room)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// questions checks whether kube-apiserver answers the questions of the server.
func questions(_ context.Context, p *inspection) finding {
	switch {
	case p.health == nil:
		return unknown("the server does not say whether kube-apiserver answers it")
	case len(p.health.Main) > 0:
		return finding{status: Fail, message: "kube-apiserver does not answer the server: " + problems(p.health.Main), fix: applyRoles}
	}
	return good("kube-apiserver answers the server: TokenReview, SubjectAccessReview, extension-apiserver-authentication")
}
