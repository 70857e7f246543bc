// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// List implements archive.Store. It returns an error that wraps ErrBadQuery for a query that asks for something that does not exist.
func (s *Store) List(ctx context.Context, query api.Query) (*api.Page, error) {
	p, err := planOf(query)
	if err != nil {
		return nil, err
	}
	after, err := positionOf(query)
	if err != nil {
		return nil, err
	}
	limit := query.Limit
	if limit == 0 || limit > api.MaxLimit {
		limit = api.MaxLimit
	}
	page := &api.Page{}
	err = s.read(ctx, func(ctx context.Context, t session) error {
		positions, err := t.positions(ctx, p, after, limit+1)
		if err != nil {
			return err
		}
		if len(positions) > limit {
			positions = positions[:limit]
			page.Continue = tokenAt(query, positions[limit-1])
		}
		page.Runs, err = t.runs(ctx, positions)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	return page, nil
}

// positions returns the first positions after another one that the plan selects.
func (s session) positions(ctx context.Context, p *plan, after position, limit int) ([]position, error) {
	var found []position
	for _, part := range p.scans(after) {
		statement, args := part.statement(p, limit)
		err := s.each(ctx, func(scan func(...any) error) error {
			var at position
			if err := scan(&at.ended, &at.run); err != nil {
				return err
			}
			found = append(found, at)
			return nil
		}, statement, args...)
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b position) int { return b.compare(a) })
	return found[:min(len(found), limit)], nil
}

// statement returns what reads a range of the index. The runs of a term are stored in the order of lists, so nothing is sorted. CROSS makes
// SQLite read the tables in the order in which they are written.
func (n scan) statement(p *plan, limit int) (string, []any) {
	var from, where strings.Builder
	from.WriteString(`SELECT t.ended, t.run FROM archive_terms t`)
	where.WriteString(` WHERE t.term = ? AND t.ended >= ? AND (t.ended, t.run) < (?, ?)`)
	args := []any{n.term[:], n.from, n.below.ended, n.below.run}
	if p.beganFrom > beginless || p.beganBefore < endless {
		from.WriteString(` CROSS JOIN archive_runs r`)
		where.WriteString(` AND r.id = t.run AND r.began >= ? AND r.began < ?`)
		args = append(args, p.beganFrom, p.beganBefore)
	}
	test := func(not string, terms []term) {
		where.WriteString(` AND ` + not + `EXISTS (SELECT 1 FROM archive_terms o WHERE o.ended = t.ended AND o.run = t.run AND o.term IN (` +
			marks(len(terms)) + `))`)
		for i := range terms {
			args = append(args, terms[i][:])
		}
	}
	for _, other := range p.others() {
		test("", other.terms)
	}
	for chunk := range slices.Chunk(p.none, maxParameters) {
		test("NOT ", chunk)
	}
	return from.String() + where.String() + ` ORDER BY t.ended DESC, t.run DESC LIMIT ?`, append(args, limit)
}

// runs returns the runs at positions, in their order.
func (s session) runs(ctx context.Context, positions []position) ([]archive.Run, error) {
	decoder := new(decoder)
	found := make(map[position]archive.Run, len(positions))
	for chunk := range slices.Chunk(positions, maxParameters) {
		args := make([]any, len(chunk))
		for i := range chunk {
			args[i] = chunk[i].run
		}
		err := s.each(ctx, func(scan func(...any) error) error {
			var r row
			if err := scan(r.targets()...); err != nil {
				return err
			}
			found[position{r.ended, r.id}] = decoder.run(&r)
			return nil
		}, `SELECT `+columns+` FROM archive_runs r WHERE r.id IN (`+marks(len(args))+`)`, args...)
		if err != nil {
			return nil, err
		}
	}
	runs := make([]archive.Run, 0, len(positions))
	for _, at := range positions {
		// An entry of the index without a run is damage. There is no run to show, and an error would stay for ever.
		if run, ok := found[at]; ok {
			runs = append(runs, run)
		}
	}
	return runs, nil
}
