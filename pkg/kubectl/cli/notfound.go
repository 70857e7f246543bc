// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

const (
	// mostSimilar is how many similar names a message has, and mostParts how many parts of a DisaggregatedSet.
	mostSimilar, mostParts = 3, 6
	// mostListed is how many names of each kind are compared.
	mostListed = 500
)

// NoObjectError says that no kind has an object of a name.
type NoObjectError struct {
	// Name is the name, and Namespace where it was looked for.
	Name, Namespace string
	// Kinds are the kinds that were looked for.
	Kinds []Kind
	// Similar are existing objects with similar names, as KIND/NAME, the most similar first.
	Similar []string
}

// Error implements error.
func (e *NoObjectError) Error() string {
	text := fmt.Sprintf("NAME: %q not found: the namespace %s has no %s of this name", e.Name, e.Namespace, Titles(e.Kinds, "or"))
	if len(e.Similar) > 0 {
		return text + "; similar names: " + strings.Join(e.Similar, ", ")
	}
	return text + "; `kubectl jobset list` lists the names"
}

// Titles joins the titles of kinds with a word.
func Titles(kinds []Kind, word string) string {
	titles := make([]string, 0, len(kinds))
	for _, k := range kinds {
		titles = append(titles, k.Title)
	}
	return Join(titles, word)
}

// noObject returns the error about a name that no kind has; nil if that is not certain. A first kind that is not served says so itself.
func (a Argument[T]) noObject(ctx context.Context, c *Clients, l looked) error {
	if len(l.found) > 0 || len(l.unknown) > 0 || slices.ContainsFunc(l.absent, a.kinds[0].is) {
		return nil
	}
	served := slices.DeleteFunc(slices.Clone(Kinds), func(k Kind) bool { return slices.ContainsFunc(l.absent, k.is) })
	return &NoObjectError{Name: a.Name, Namespace: c.Namespace, Kinds: served, Similar: similar(ctx, c, a.Name, served)}
}

// similar returns objects of the kinds with names like the wanted one, as KIND/NAME. Kinds that cannot be listed are left out.
func similar(ctx context.Context, c *Clients, wanted string, kinds []Kind) []string {
	ctx, stop := context.WithTimeout(ctx, lookupTimeout)
	defer stop()
	kindOf := map[string]string{}
	for _, k := range kinds {
		list, err := c.Metadata.Resource(k.Resource()).Namespace(c.Namespace).List(ctx, metav1.ListOptions{Limit: mostListed})
		if err != nil {
			continue
		}
		for i := range list.Items {
			if name := list.Items[i].Name; kindOf[name] == "" {
				kindOf[name] = k.Short()
			}
		}
	}
	names := make([]string, 0, len(kindOf))
	for name := range kindOf {
		names = append(names, name)
	}
	out := Near(wanted, names)
	for i, name := range out {
		out[i] = kindOf[name] + "/" + name
	}
	return out
}

// partsOf returns what a user may give instead of a DisaggregatedSet: its LeaderWorkerSets. It is "" for other kinds, and where they are
// not known.
func partsOf(ctx context.Context, c *Clients, k Kind, name string) string {
	if !k.is(DisaggregatedSet) {
		return ""
	}
	ctx, stop := context.WithTimeout(ctx, lookupTimeout)
	defer stop()
	list, err := c.Metadata.Resource(LeaderWorkerSet.Resource()).Namespace(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: disaggregatedsetv1.SetNameLabelKey + "=" + name, Limit: mostListed,
	})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	var parts []string
	for i := range list.Items {
		parts = append(parts, LeaderWorkerSet.Short()+"/"+list.Items[i].Name)
	}
	slices.Sort(parts)
	more := ""
	if len(parts) > mostParts {
		more = fmt.Sprintf(" and %d more", len(parts)-mostParts)
	}
	return "; its parts are " + strings.Join(parts[:min(mostParts, len(parts))], ", ") + more
}

// Near returns the names most like the wanted one.
func Near(wanted string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, name := range names {
		distance := editDistance(wanted, name)
		if strings.HasPrefix(name, wanted) || strings.HasPrefix(wanted, name) {
			distance = min(distance, 1)
		}
		if distance <= max(1, len(wanted)/3) {
			found = append(found, candidate{name, distance})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Or(a.distance-b.distance, strings.Compare(a.name, b.name)) })
	var out []string
	for _, c := range found[:min(mostSimilar, len(found))] {
		out = append(out, c.name)
	}
	return out
}

// editDistance is the number of letters to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
