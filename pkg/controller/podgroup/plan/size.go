// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// StabilizationWindow is the time without an added pod after which a group whose size nothing states may be ready.
const StabilizationWindow = 2 * time.Second

// MaxSize is the largest size that a pod may state.
const MaxSize = 100_000

// Source is where the size of a group comes from.
type Source string

// The sources, the first that has a size counts.
const (
	// FromGroup is minMember of the PodReadinessGroup.
	FromGroup Source = "minMember"
	// FromPods is the largest size that a pod states.
	FromPods Source = "label"
	// FromOwners is the sum of what the owners of the pods are meant to have.
	FromOwners Source = "owners"
	// FromExisting is the number of pods that exist.
	FromExisting Source = "pods"
)

// Sources are all sources.
var Sources = []Source{FromGroup, FromPods, FromOwners, FromExisting}

// size is how many pods a group is meant to have.
type size struct {
	pods   int32
	source Source
	// unread means that owners were not asked, or did not answer.
	unread bool
	// mayGrow means that pods count because they exist, so that more of them may come.
	mayGrow bool
	// problem is that stated sizes are malformed, or contradict each other.
	problem Problem
}

// sizeOf returns the size of a group (docs/reference/batch.md#size).
func sizeOf(o Observed) size {
	if o.GroupUnknown {
		return size{source: FromGroup, unread: true}
	}
	if min := o.minMember(); min != nil {
		return size{pods: *min, source: FromGroup}
	}
	stated := statedSize(o.Pods, o.Prefix)
	if stated.pods > 0 {
		return stated
	}
	s := ownedSize(o)
	s.problem = stated.problem
	return s
}

func (o Observed) minMember() *int32 {
	if o.Group == nil {
		return nil
	}
	return o.Group.Spec.MinMember
}

// statedSize returns the largest valid size that a pod states. Pods that are being deleted state nothing.
func statedSize(pods []*Pod, prefix Prefix) size {
	s := size{source: FromPods}
	eachStated(pods, func(_ *Pod, n int32) { s.pods = max(s.pods, n) })
	malformed, first := false, (*Pod)(nil)
	eachStated(pods, func(p *Pod, n int32) {
		malformed = malformed || n == 0
		if (n == 0 || n != s.pods) && (first == nil || p.Name < first.Name) {
			first = p
		}
	})
	if first == nil {
		return s
	}
	why := fmt.Sprintf("%s must be the same number on all pods of the group; the largest, %d, counts", prefix.SizeKey, s.pods)
	if malformed {
		why = fmt.Sprintf("%s must be a number from 1 to %d on all pods of the group", prefix.SizeKey, MaxSize)
	}
	s.problem = Problem{Pod: Ref{Name: first.Name, UID: first.UID}, Message: why, Why: why}
	return s
}

// eachStated calls do for each size that a pod states; with 0 for one that is malformed.
func eachStated(pods []*Pod, do func(*Pod, int32)) {
	for _, p := range pods {
		for _, text := range [...]string{p.SizeLabel, p.SizeAnnotation} {
			if text != "" && !p.Terminating {
				do(p, parseSize(text))
			}
		}
	}
}

// parseSize returns 0 for what is no size.
func parseSize(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > MaxSize {
		return 0
	}
	return int32(n)
}

// ownedSize is the sum of what the owners are meant to have, and of the pods that exist and of which no owner says how many there will
// be.
func ownedSize(o Observed) size {
	s := size{source: FromExisting}
	roots := map[types.UID]bool{}
	sum := int64(0)
	last, owner, read := Owner{}, OwnerSize{}, false // pods of one owner often follow each other
	for _, p := range o.Pods {
		if p.Terminating {
			continue
		}
		if p.Owner != last {
			last = p.Owner
			owner, read = o.Owners[last]
		}
		switch {
		case p.Owner.Kind != "" && !read:
			s.unread, s.source = true, FromOwners
		case read && !owner.Unknown:
			s.source = FromOwners
			if !roots[owner.Root] {
				roots[owner.Root] = true
				sum += int64(owner.Pods)
			}
		case p.Phase != Failed:
			sum++
			s.mayGrow = true
		}
	}
	gone := int64(lost(o))
	s.mayGrow = s.mayGrow || gone > 0
	s.pods = int32(min(sum+gone, math.MaxInt32)) //nolint:gosec // it is bounded
	return s
}

// lost is the number of failed pods that no owner speaks for and that nothing has replaced yet. A failed pod is replaced by one of the
// same owner that was created after its end. One without an owner is never replaced.
func lost(o Observed) (n int) {
	var failed []*Pod
	for _, p := range o.Pods {
		if p.Terminating || p.Phase != Failed {
			continue
		}
		if owner, read := o.Owners[p.Owner]; p.Owner.Kind == "" || read && owner.Unknown {
			failed = append(failed, p)
		}
	}
	if len(failed) == 0 {
		return 0
	}
	slices.SortFunc(failed, func(a, b *Pod) int { return cmp.Compare(a.Ended, b.Ended) })
	created := creations(o.Pods)
	for _, p := range failed {
		times := created[p.Owner]
		at, _ := slices.BinarySearch(times, p.Ended)
		if at == len(times) {
			n++
			continue
		}
		created[p.Owner] = times[at+1:]
	}
	return n
}

// creations are when the pods of each owner were created, in order.
func creations(pods []*Pod) map[Owner][]int64 {
	created := map[Owner][]int64{}
	for _, p := range pods {
		if p.Owner.UID != "" && !p.Terminating {
			created[p.Owner] = append(created[p.Owner], p.Created)
		}
	}
	for _, times := range created {
		slices.Sort(times)
	}
	return created
}

// Needs returns the owners whose sizes decide about the group: none if the size is known without them or cannot be known, if too few pods
// run whatever they say, or if nothing depends on it. In the order in which the pods come.
func Needs(o Observed) []Owner {
	if o.GroupUnknown {
		return nil // whatever they say
	}
	if o.minMember() != nil || statedSize(o.Pods, o.Prefix).pods > 0 {
		return nil
	}
	c := countPods(o)
	if int(c.running) < len(owners(o.Pods, (*Pod).counts)) || c.unlabeled == 0 && o.Group == nil {
		return nil
	}
	return Owners(o.Pods)
}

// Owners returns the owners of pods that say how many pods there are to be, in the order in which the pods come. Those
// whose pods have all failed are among them: they want others.
func Owners(pods []*Pod) []Owner {
	return owners(pods, func(p *Pod) bool { return !p.Terminating })
}

func owners(pods []*Pod, of func(*Pod) bool) (owners []Owner) {
	seen, last := map[Owner]bool{}, Owner{}
	for _, p := range pods {
		if !of(p) || p.Owner == last || p.Owner.Kind == "" {
			continue
		}
		if last = p.Owner; !seen[last] {
			seen[last] = true
			owners = append(owners, last)
		}
	}
	return owners
}

func readyWhen(group *batchv1alpha1.PodReadinessGroup) batchv1alpha1.ReadyWhen {
	if group == nil {
		return batchv1alpha1.ReadyWhenRunning
	}
	return group.Spec.ReadyWhen
}
