// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// What the server says about a set that keeps no former revisions.
const (
	keepsNoRevisions = "spec.revisionHistoryLimit is 0"
	// historyLimit is the number of revisions that the command proposes to keep.
	historyLimit = 3
)

// rollbackNotes is what the answer to a rollback says beyond that the set was rolled back: what it waits for, and what is not kept.
func (r *runner) rollbackNotes(o object, message string) string {
	if r.action.name != rollback.name {
		return ""
	}
	_, notes, more := strings.Cut(message, "; ")
	if !more {
		return ""
	}
	return "; " + r.keepRevisions(o, notes)
}

// keepRevisions adds the command with which a set keeps former revisions to a text which says that it keeps none.
func (r *runner) keepRevisions(o object, text string) string {
	if r.action.name != rollback.name || o.target.Title != cli.LeaderWorkerSet.Title || !strings.Contains(text, keepsNoRevisions) {
		return text
	}
	return fmt.Sprintf(`%s; to keep the last %d: kubectl patch %s %s -n %s --type=merge -p '{"spec":{"revisionHistoryLimit":%d}}'`,
		text, historyLimit, o.target.Names[0], o.name, r.clients.Namespace, historyLimit)
}
