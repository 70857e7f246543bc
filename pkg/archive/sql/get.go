// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// named selects the runs with a name, newest first. The hash of the name in a key makes two runs with one name as good as impossible.
const named = ` FROM archive_terms t CROSS JOIN archive_runs r LEFT JOIN archive_details d ON d.run = r.id ` +
	`WHERE t.term = ? AND r.id = t.run`

func nameTerm(namespace, name string) []byte {
	t := scope{namespace: namespace}.term(string(api.FieldName), name)
	return t[:]
}

// Get implements archive.Store.
func (s *Store) Get(ctx context.Context, namespace, name string) (*archive.Run, error) {
	var r row
	err := s.read(ctx, func(ctx context.Context, t session) error {
		return t.row(ctx, `SELECT `+columns+`, d.details`+named+` ORDER BY t.ended DESC, t.run DESC LIMIT 1`, nameTerm(namespace, name)).
			Scan(append(r.targets(), &r.details)...)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, api.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	run := new(decoder).detailed(&r)
	return &run, nil
}

// Delete implements archive.Store.
func (s *Store) Delete(ctx context.Context, namespace, name string, uid types.UID) (*archive.Run, error) {
	var r row
	err := s.write(ctx, func(ctx context.Context, t session) error {
		var old stored
		err := t.row(ctx, `SELECT `+columns+`, r.bytes, d.terms`+named+` AND r.uid = ? ORDER BY t.ended DESC, t.run DESC LIMIT 1`,
			nameTerm(namespace, name), column(string(uid))).Scan(append(r.targets(), &old.bytes, &old.terms)...)
		if err != nil {
			return err
		}
		old.id, old.ended = r.id, r.ended
		err = t.exec(ctx, `INSERT INTO archive_tombstones (run_key, ended) VALUES (?, ?) `+
			`ON CONFLICT (run_key) DO UPDATE SET ended = excluded.ended`, r.key, r.ended)
		if err != nil {
			return err
		}
		return t.remove(ctx, old)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, api.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("deleting a run: %w", err)
	}
	run := new(decoder).run(&r)
	return &run, nil
}

// remove removes runs, and all that belongs to them.
func (s session) remove(ctx context.Context, runs ...stored) error {
	if len(runs) == 0 {
		return nil
	}
	var bytes int64
	ids := make([]any, len(runs))
	for i, run := range runs {
		ids[i] = run.id
		bytes += run.bytes
		if err := s.removeTerms(ctx, run.id, run.ended, run.terms); err != nil {
			return err
		}
	}
	if err := s.exec(ctx, `DELETE FROM archive_details WHERE run IN (`+marks(len(ids))+`)`, ids...); err != nil {
		return err
	}
	if err := s.exec(ctx, `DELETE FROM archive_runs WHERE id IN (`+marks(len(ids))+`)`, ids...); err != nil {
		return err
	}
	return s.grow(ctx, -bytes)
}
