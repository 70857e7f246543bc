// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const runbooks = "docs/operations/runbooks/"

// etcd checks the members of the store.
func etcd(_ context.Context, p *inspection) finding {
	switch {
	case p.failing(etcdChecks...):
		return finding{status: Fail, certain: true, message: "the server does not reach its store: its readiness check etcd fails",
			fix: p.lookAtMembers()}
	case p.health == nil:
		return unknown("the server does not say how its store is")
	case len(p.health.Etcd) == 0:
		return unknown("the server does not say where its store is")
	}
	if f := p.majority(); f.status == Fail {
		return f
	}
	f := p.space()
	if lacks := p.minority(); f.status != Fail && lacks.status != OK {
		return lacks
	}
	return f
}

// majority checks that members answer and have a leader.
func (p *inspection) majority() finding {
	dead, leaderless := p.dead(), p.membersThat(func(m selfcheck.Member) bool { return m.NoLeader })
	switch all := len(p.health.Etcd); {
	case len(dead) == all:
		return finding{status: Fail, certain: true, fix: p.lookAtMembers(),
			message: "no member of " + p.etcdName() + " answers: " + shorten(dead)}
	case len(dead)+len(leaderless) == all:
		f := finding{status: Fail, certain: true, fix: p.lookAtMembers(),
			message: p.etcdName() + " has no leader, because too few of its members reach each other"}
		if len(dead) > 0 {
			f.message += "; " + shorten(dead)
		}
		return f
	}
	return finding{status: OK}
}

// minority checks that no member is missing while the others work.
func (p *inspection) minority() finding {
	dead := p.dead()
	leaderless := p.membersThat(func(m selfcheck.Member) bool { return m.NoLeader })
	learners := p.membersThat(func(m selfcheck.Member) bool { return m.Learner })
	switch {
	case len(dead) > 0:
		name, _, _ := strings.Cut(dead[0], ": ")
		return finding{status: Warn, fix: p.lookAt(name, "describe pod %s", "JobSetStoreMemberAway"),
			message: fmt.Sprintf("%d of %d members of %s do not answer: %s", len(dead), len(p.health.Etcd), p.etcdName(), shorten(dead))}
	case len(leaderless) > 0:
		return finding{status: Warn, fix: p.lookAt(leaderless[0], "logs %s --tail=20", "JobSetStoreNoLeader"),
			message: fmt.Sprintf("%s reaches no leader of %s", cli.Join(leaderless, "and"), p.etcdName())}
	case len(learners) > 0:
		return finding{status: Warn, fix: p.lookAt(learners[0], "logs %s --tail=20", "JobSetStoreLearnerStuck"),
			message: fmt.Sprintf("%s has no vote in %s yet: it still receives the data of the other members", cli.Join(learners, "and"),
				p.etcdName())}
	}
	return finding{status: OK}
}

// cluster has the members of an embedded etcd with several; nil if the store is another one.
func (p *inspection) cluster() *witness.Cluster {
	if p.record == nil {
		return nil
	}
	return p.record.Cluster
}

// lost are the members whose data directories are empty, if these are most of the members.
func (p *inspection) lost() []string {
	if p.serves() {
		return nil
	}
	return p.cluster().Lost(p.now)
}

func (p *inspection) etcdName() string {
	if p.cluster() != nil {
		return "the embedded etcd"
	}
	return "etcd"
}

// dead are the members that do not answer, each with the reason.
func (p *inspection) dead() (texts []string) {
	for i, m := range p.health.Etcd {
		if m.Error != "" {
			texts = append(texts, p.memberName(i)+": "+m.Error)
		}
	}
	return texts
}

// membersThat returns the names of some members.
func (p *inspection) membersThat(is func(selfcheck.Member) bool) (names []string) {
	for i, m := range p.health.Etcd {
		if is(m) {
			names = append(names, p.memberName(i))
		}
	}
	return names
}

// memberName is the name of the pod of an embedded member, or else the address. The server lists the members by their ordinals.
func (p *inspection) memberName(ordinal int) string {
	if cluster := p.cluster(); cluster != nil {
		for i := range p.servers {
			if strings.HasSuffix(p.servers[i].Name, fmt.Sprintf("-%d", ordinal)) {
				return p.servers[i].Name
			}
		}
		for _, m := range cluster.Members {
			if strings.HasSuffix(m.Name, fmt.Sprintf("-%d", ordinal)) {
				return m.Name
			}
		}
	}
	return p.health.Etcd[ordinal].Endpoint
}

// lookAt is a command about a member, with the page that says how to go on. It is about all members if no pod is known that runs it.
func (p *inspection) lookAt(member, verb, page string) string {
	if strings.Contains(member, "://") {
		return p.lookAtMembers()
	}
	return fmt.Sprintf("kubectl -n %s %s   # %s%s.md", p.namespace, fmt.Sprintf(verb, member), runbooks, page)
}

// lookAtMembers is a command about all members.
func (p *inspection) lookAtMembers() string {
	if p.cluster() != nil {
		return "kubectl -n " + p.namespace + " get pods,pvc -o wide   # two of three members must run: " + runbooks + "JobSetStoreNoLeader.md"
	}
	return "kubectl -n " + p.namespace + " get pods,pvc   # and the log of etcd"
}
