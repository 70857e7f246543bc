// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// meanings say what a state is.
var meanings = map[State]string{
	Serving:   "no server refuses the store",
	Refused:   "a server refuses the store and answers no request",
	Accepted:  "the store is accepted; the server that refuses it is about to serve it",
	NoWitness: "ConfigMap " + witness.Namespace + "/" + witness.Name + " has no record",
}

// noWitness explains the state.
const noWitness = "No server has served a store of this cluster yet, the record was deleted, or the server runs with " +
	"--store-witness=false.\n" +
	"A server writes the record when it starts. The manifests have the ConfigMap; the server may not create it.\n"

// write writes the status for humans.
func (s *Status) write(out io.Writer, now time.Time) error {
	lines := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(lines, "%s:\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("State", "%s, %s", s.State, s.meaning())
	switch {
	case s.UUID != "":
		line("Store", "%s, at revision %d or later", s.UUID, s.Floor)
	case s.State != NoWitness:
		line("Store", "none was ever served")
	}
	s.writeMembers(line)
	if s.Refusal != nil {
		s.writeRefusal(line, now)
	}
	if s.Accepted != nil {
		line("Accepted", "UUID %s at revision %d%s", s.Accepted.NewUUID, s.Accepted.Revision, s.effect())
	}
	if s.Restored != nil {
		line("Restored", "accepted by an administrator at %s, revision %d", s.Restored.Time.UTC().Format(time.RFC3339), s.Restored.Revision)
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	var err error
	switch {
	case s.Refusal != nil:
		_, err = fmt.Fprintf(out, "\n%s\n", s.Refusal.Message)
	case s.State == NoWitness:
		_, err = fmt.Fprint(out, "\n"+noWitness)
	}
	if err == nil && s.Unreadable != nil {
		err = s.Unreadable.write(out)
	}
	return err
}

// writeMembers describes the embedded members, if there are several.
func (s *Status) writeMembers(line func(name, format string, args ...any)) {
	if s.Cluster != nil {
		line("Members", "%s", membersText(s.Cluster))
	}
	if len(s.lost) > 0 {
		line("Lost", "the data of %s, which is most of the members: put the volumes back, or restore a backup on the first member",
			strings.Join(s.lost, " and "))
	}
}

// membersText names the members of a cluster.
func membersText(cluster *witness.Cluster) string {
	if len(cluster.Members) == 0 {
		return "not reported yet, " + cluster.String()
	}
	names := make([]string, len(cluster.Members))
	for i, member := range cluster.Members {
		names[i] = fmt.Sprintf("%s (%s)", member.Name, member.ID)
		if member.Learner {
			names[i] = fmt.Sprintf("%s (%s, joins and has no vote yet)", member.Name, member.ID)
		}
	}
	return strings.Join(names, ", ") + " of " + cluster.String()
}

// meaning says what the state is.
func (s *Status) meaning() string {
	if s.Refusal == nil || len(s.Refusal.Groups) == 0 {
		return meanings[s.State]
	}
	if s.State == Accepted {
		return "the API groups are accepted; the server is about to serve them"
	}
	return "a server refuses API groups, and serves the others"
}

func (s *Status) writeRefusal(line func(name, format string, args ...any), now time.Time) {
	age := now.Sub(s.Refusal.Time.Time)
	confirmed := fmt.Sprintf("%s, which confirmed it %s ago", s.Refusal.Server, duration.HumanDuration(age))
	if age < 0 {
		confirmed = s.Refusal.Server + ", which confirmed it at " + s.Refusal.Time.UTC().Format(time.RFC3339) +
			" by its clock, which is ahead of the one here"
	}
	if !s.Confirmed {
		confirmed += " for the last time: it may have stopped, unless its clock differs from the one here"
	}
	line("Refused by", "%s", confirmed)
	line("Reason", "%s", s.Refusal.Reason)
	if len(s.Refusal.Groups) > 0 {
		line("API groups", "%s", strings.Join(s.Refusal.Groups, ", "))
	}
	line("Found", "UUID %s at revision %d", s.Refusal.NewUUID, s.Refusal.Revision)
	line("At stake", "%s", s.Refusal.Losses())
	if s.Refusal.Served {
		line("Served", "yes: the server had answered before it noticed; restart kube-controller-manager once the right store is back")
	}
}

// effect says what an acceptance does.
func (s *Status) effect() string {
	switch {
	case s.Effective:
		return ""
	case s.Refusal == nil:
		return ": without effect, no server refuses a store"
	}
	return fmt.Sprintf(": without effect, what is refused has UUID %s at revision %d", s.Refusal.NewUUID, s.Refusal.Revision)
}

// plural returns a number with what is counted.
func plural(count int, one string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", count, one)
}

// joined lists resources for a message.
func joined(resources []schema.GroupResource) string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	return strings.Join(names, ", ")
}
