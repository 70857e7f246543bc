// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"fmt"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// recordName is how messages name the record.
const recordName = "ConfigMap " + witness.Namespace + "/" + witness.Name

// namedJobs is how many Jobs a message names. The refusal has more of them.
const namedJobs = 5

// message is the paragraph about a refusal: what was found, what is at stake, and what to do.
func (g *Guard) message(r *refusal, s *sight) string {
	sentences := []string{g.found(r, s)}
	if r.Reason != witness.ReasonUnknownOwners && r.Reason != witness.ReasonNewerFormat {
		sentences = append(sentences, stake(r))
	}
	if r.Served {
		sentences = append(sentences, "This server had answered before it noticed, and kube-controller-manager remembers owners that were reported missing: "+
			"restart it after the right store is back.")
	}
	return strings.Join(append(sentences, remedy(r)...), " ")
}

// found says what the server has found, and how that may have come about.
func (g *Guard) found(r *refusal, s *sight) string {
	switch r.Reason {
	case witness.ReasonEmptyStore:
		return fmt.Sprintf("The store of this server is empty: etcd has no key %s, but %s names the store %s. "+
			"Either the server uses another directory, volume or etcd than before, or the data was lost.", g.store.key, recordName, s.record.UUID)
	case witness.ReasonForeignStore:
		return fmt.Sprintf("The store of this server is not the one of this cluster: its key in etcd names the store %s, but %s names the store %s. "+
			"Either the server uses another directory, volume or etcd than before, or a second server runs with a store of its own.",
			s.key.UUID, recordName, s.record.UUID)
	case witness.ReasonOtherCluster:
		return fmt.Sprintf("The store of this server belongs to another cluster: its key in etcd names the cluster whose namespace %s has the UID %s, but here that has the UID %s. "+
			"Either two clusters use one store, or this cluster or its store is a clone. Two clusters must never use one store, because each would delete the objects of the other.",
			witness.Namespace, s.key.ClusterUID, s.cluster)
	case witness.ReasonRolledBack:
		return rolledBack(s)
	case witness.ReasonNewerFormat:
		return fmt.Sprintf("The store of this server was written by a newer version of jobset-apiserver: %s, with data of format %d. Version %s knows format %d and could damage them.",
			s.key.Version, s.key.Format, g.Version, witness.Format)
	default:
		return unknownOwners(r)
	}
}

func rolledBack(s *sight) string {
	was, is := s.record.Floor, s.key.ModRevision
	if s.key.Behind > 0 {
		was, is = s.key.Behind, is-1
	}
	return fmt.Sprintf("The store of this server is older than it was: it is at revision %d, but has been at revision %d. "+
		"It was restored from a backup, or an old copy or snapshot of it was put in its place.", is, was)
}

func unknownOwners(r *refusal) string {
	found := fmt.Sprintf("This server does not know its store yet, and the store does not have the owners of %s that are in this cluster. "+
		"If this store were served, the garbage collector would delete them.", atStake(r))
	return found + " There are three causes. The server uses another directory, volume or etcd than before. Or the etcd of the main cluster was restored from " +
		"a backup, and with it came Jobs whose owners were deleted since. Or the Jobs belong to custom resources of another JobSet controller, which this server hides: " +
		"delete the APIService v1alpha2.jobset.x-k8s.io, and let these JobSets end or import them first."
}

// stake says what the garbage collector would do.
func stake(r *refusal) string {
	switch {
	case r.JobsAtStake < 0:
		return "If this store were served, the garbage collector would delete the Jobs whose owners it does not have; how many is not known."
	case r.JobsAtStake+r.ClaimsAtStake == 0:
		return "No Jobs are at stake."
	}
	return fmt.Sprintf("If this store were served, the garbage collector would delete %s, because it does not have their owners.", atStake(r))
}

// atStake counts Jobs and volume claims.
func atStake(r *refusal) string {
	claims := plural(r.ClaimsAtStake, "volume claim")
	switch {
	case r.ClaimsAtStake == 0:
		return jobs(r)
	case r.JobsAtStake <= 0:
		return claims
	}
	return jobs(r) + " and " + claims
}

// jobs counts the Jobs at stake and names some.
func jobs(r *refusal) string {
	named := r.Jobs[:min(len(r.Jobs), namedJobs)]
	text := plural(r.JobsAtStake, "Job")
	if len(named) == 0 {
		return text
	}
	text += " (" + strings.Join(named, ", ")
	if rest := r.JobsAtStake - len(named); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text + ")"
}

func plural(count int, one string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", count, one)
}

// remedy says what to do. Putting the right store back comes first, because then nothing is lost.
func remedy(r *refusal) []string {
	if r.Reason == witness.ReasonNewerFormat {
		return []string{"All running Jobs go on. Run that version or a newer one, or restore a backup from before the upgrade (jobset-apiserver store restore)."}
	}
	steps := []string{"All running Jobs go on. If the right store still exists, put it back, and the server serves it."}
	if r.Reason == witness.ReasonEmptyStore || r.Reason == witness.ReasonForeignStore {
		steps = append(steps, "If it is lost, restore a backup (jobset-apiserver store restore).")
	}
	accept := fmt.Sprintf("jobset-apiserver store accept --uuid=%s --revision=%d", r.NewUUID, r.Revision)
	if r.JobsAtStake == 0 && r.ClaimsAtStake == 0 {
		return append(steps, "If this is the store that you want, accept it: "+accept)
	}
	return append(steps, "If this is the store that you want, first keep what is at stake (jobset-apiserver store release-orphans), and then accept it: "+accept)
}
