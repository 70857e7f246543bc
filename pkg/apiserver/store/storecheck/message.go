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

// message is the paragraph about a refusal: what was found, what would be deleted, and what to do.
func (g *Guard) message(r *refusal, s *observation) string {
	sentences := []string{g.found(r, s)}
	if r.Reason != witness.ReasonUnknownOwners && r.Reason != witness.ReasonCustomResources && r.Reason != witness.ReasonNewerFormat {
		sentences = append(sentences, consequence(r))
	}
	if r.Served {
		sentences = append(sentences, "This server had answered before it noticed, and kube-controller-manager remembers owners that were "+
			"reported missing: restart it after the right store is back.")
	}
	return strings.Join(append(sentences, remedy(r)...), " ")
}

// found says what the server has found, and how that may have come about.
func (g *Guard) found(r *refusal, s *observation) string {
	switch r.Reason {
	case witness.ReasonEmptyStore:
		return fmt.Sprintf("The store of this server is empty: etcd has no key %s, but %s names the store %s. "+
			"Either the server uses another directory, volume or etcd than before, or the data was lost.", g.store.key, recordName, s.record.UUID)
	case witness.ReasonForeignStore:
		return fmt.Sprintf("The store of this server is not the one of this cluster: its key in etcd names the store %s, but %s names the "+
			"store %s. Either the server uses another directory, volume or etcd than before, or a second server runs with a store of its own.",
			s.key.UUID, recordName, s.record.UUID)
	case witness.ReasonOtherCluster:
		return fmt.Sprintf("The store of this server belongs to another cluster: its key in etcd names the cluster whose namespace %s has the "+
			"UID %s, but here that has the UID %s. Either two clusters use one store, or this cluster or its store is a clone. Two "+
			"clusters must never use one store, because each "+
			"would delete the objects of the other.",
			witness.Namespace, s.key.ClusterUID, s.cluster)
	case witness.ReasonRolledBack:
		return g.rolledBack(s)
	case witness.ReasonNewerFormat:
		return fmt.Sprintf("The store of this server was written by a newer version of jobset-apiserver: %s, with data of format %d. Version "+
			"%s knows format %d and could damage them.",
			s.key.Version, s.key.Format, g.Version, witness.Format)
	case witness.ReasonCustomResources:
		return customResources(r)
	default:
		return unknownOwners(r)
	}
}

func (g *Guard) rolledBack(s *observation) string {
	was, is := s.record.Floor, s.key.ModRevision
	switch other := s.key.Behind == 0 && is >= was; {
	case other && g.Cluster == nil:
		return fmt.Sprintf("The store of this server has one member, but %s names the %s of three embedded members, which may have newer data. "+
			"It was restored from a backup.", recordName, s.record.Cluster)
	case other:
		return fmt.Sprintf("The store of this server belongs to the %s of embedded members, but %s names the %s, whose members may have newer "+
			"data. It was restored from a backup.", g.Cluster, recordName, s.record.Cluster)
	}
	if s.key.Behind > 0 {
		was, is = s.key.Behind, is-1
	}
	return fmt.Sprintf("The store of this server is older than it was: it is at revision %d, but has been at revision %d. "+
		"It was restored from a backup, or an old copy or snapshot of it was put in its place.", is, was)
}

func unknownOwners(r *refusal) string {
	if len(r.Groups) > 0 {
		return fmt.Sprintf("This server serves its store, but not %s: it looks at a group before it serves the group for the first time, or "+
			"after kube-apiserver has served it, and the store does not have the owners of %s that are in this cluster. If the group were "+
			"served, the garbage collector would delete them, with all that they own. They belong to custom resources that were not imported, "+
			"or to objects that were deleted since.", strings.Join(r.Groups, ", "), r.Losses())
	}
	found := fmt.Sprintf("This server does not know its store yet, and the store does not have the owners of %s that are in this cluster. "+
		"If this store were served, the garbage collector would delete them, with all that they own.", r.Losses())
	return found + " There are three causes. The server uses another directory, volume or etcd than before. Or the etcd of the main " +
		"cluster was restored from a backup, and with it came objects whose owners were deleted since. Or they belong to custom " +
		"resources of another controller, which were not imported: " +
		"see docs/operations/take-over.md."
}

// customResources describes the definitions, and what to do about each.
func customResources(r *refusal) string {
	sentences := []string{"This server does not know its store yet, and this cluster has custom resources of kinds that the server would " +
		"serve."}
	if len(r.Groups) > 0 {
		sentences[0] = "This server serves its store, but not " + strings.Join(r.Groups, ", ") + ": this cluster has custom resources of kinds " +
			"that the server would serve."
	}
	for _, d := range r.definitions {
		if d.HiddenBy == "" {
			sentences = append(sentences, fmt.Sprintf("CustomResourceDefinition %s has objects that the store does not have.", d.GroupResource))
			continue
		}
		sentences = append(sentences, fmt.Sprintf("CustomResourceDefinition %s may have objects that the store does not have. They cannot be "+
			"counted, because APIService %s routes the group to this server.", d.GroupResource, d.HiddenBy))
	}
	return strings.Join(append(sentences, consequence(r)), " ")
}

// takeOver says what to do about custom resources.
func takeOver(r *refusal) []string {
	steps := []string{"Running pods are not affected."}
	for _, d := range r.definitions {
		if d.HiddenBy != "" {
			steps = append(steps, fmt.Sprintf("To see the objects of %s, and to leave the group to its controller, give the group back: kubectl "+
				"label --overwrite apiservice %s kube-aggregator.kubernetes.io/automanaged=true. The server then serves its other groups, and "+
				"looks at this one again when it is routed here.", d.GroupResource, d.HiddenBy))
		}
	}
	return append(steps, "To move the objects to this server, import them (jobset-apiserver store import, which works while the server "+
		"refuses): see docs/operations/take-over.md.")
}

// consequence says what the garbage collector would do.
func consequence(r *refusal) string {
	switch losses := r.Losses(); {
	case losses.Unknown:
		return "If this store were served, the garbage collector would delete the objects whose owners it does not have; how many is not known."
	case !losses.Any():
		return "No object would be deleted: the store has the owners of all objects in this cluster."
	case losses.One():
		return fmt.Sprintf("If this store were served, the garbage collector would delete %s, with all that it owns, because the store does "+
			"not have the owner.", losses)
	default:
		return fmt.Sprintf("If this store were served, the garbage collector would delete %s, with all that they own, because the store does "+
			"not have the owners.", losses)
	}
}

// remedy says what to do. Putting the right store back comes first, because then nothing is lost.
func remedy(r *refusal) []string {
	if r.Reason == witness.ReasonNewerFormat {
		return []string{"Running pods are not affected. Run that version or a newer one, or restore a backup from before the upgrade " +
			"(jobset-apiserver store restore)."}
	}
	steps := []string{"Running pods are not affected. If the right store still exists, put it back, and the server serves it."}
	if len(r.Groups) > 0 {
		steps[0] = "Running pods are not affected."
	}
	switch r.Reason {
	case witness.ReasonEmptyStore, witness.ReasonForeignStore:
		steps = append(steps, "If it is lost, restore a backup (jobset-apiserver store restore).")
	case witness.ReasonUnknownOwners:
		steps = append(steps, "If these objects are not needed, delete them with kubectl, and the server serves within seconds.")
	case witness.ReasonCustomResources:
		steps = takeOver(r)
	}
	accept := fmt.Sprintf("jobset-apiserver store accept --uuid=%s --revision=%d", r.NewUUID, r.Revision)
	losses := r.Losses()
	switch {
	case losses.Any() && len(r.Groups) > 0:
		return append(steps, "If the group has to be served as the store has it, first keep these objects (jobset-apiserver store "+
			"release-orphans), and then accept it: "+accept)
	case losses.Any():
		return append(steps, "If this is the store that you want, first keep these objects (jobset-apiserver store release-orphans), and "+
			"then accept it: "+accept)
	case r.Reason == witness.ReasonCustomResources:
		return append(steps, "If there are no such objects, or they are not needed, accept the store: "+accept)
	}
	return append(steps, "If this is the store that you want, accept it: "+accept)
}
