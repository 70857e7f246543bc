// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// maxParameters is how many values a statement gets that works on a list. Longer lists are worked on in parts.
const maxParameters = 500

// Put implements archive.Store.
func (s *Store) Put(ctx context.Context, runs []archive.Run) error {
	if len(runs) == 0 {
		return nil
	}
	rows, keys := make([]row, len(runs)), make([][]byte, len(runs))
	encoder := newEncoder()
	for i := range runs {
		var err error
		if rows[i], err = encoder.encode(&runs[i]); err != nil {
			return err
		}
		keys[i] = rows[i].key
	}
	err := s.write(ctx, func(ctx context.Context, t session) error {
		out, err := t.leftOut(ctx, keys)
		if err != nil {
			return err
		}
		var grown int64
		for i := range rows {
			if out.deleted[string(rows[i].key)] {
				continue
			}
			n, err := t.put(ctx, &rows[i], out.floor)
			if err != nil {
				return err
			}
			grown += n
		}
		return t.grow(ctx, grown)
	})
	if err != nil {
		return fmt.Errorf("storing %d runs: %w", len(runs), err)
	}
	return nil
}

// leftOut is what is not stored again.
type leftOut struct {
	deleted map[string]bool
	floor   int64
}

func (s session) leftOut(ctx context.Context, keys [][]byte) (leftOut, error) {
	floor, err := s.meta(ctx, "floor")
	if err != nil {
		return leftOut{}, err
	}
	out := leftOut{deleted: map[string]bool{}, floor: floor}
	err = s.lookup(ctx, `SELECT run_key FROM archive_tombstones WHERE run_key IN (`, keys, func(scan func(...any) error) error {
		var key []byte
		if err := scan(&key); err != nil {
			return err
		}
		out.deleted[string(key)] = true
		return nil
	})
	return out, err
}

// lookup runs a statement that ends with the begin of a list for all keys.
func (s session) lookup(ctx context.Context, statement string, keys [][]byte, scan func(func(...any) error) error) error {
	for chunk := range slices.Chunk(keys, maxParameters) {
		args := make([]any, len(chunk))
		for i := range chunk {
			args[i] = chunk[i]
		}
		if err := s.each(ctx, scan, statement+marks(len(chunk))+`)`, args...); err != nil {
			return err
		}
	}
	return nil
}

// stored is what the database has of a run.
type stored struct {
	id, ended, bytes int64
	terms            []byte
}

// storedColumns are the columns of a stored run and the tables that have them.
const storedColumns = `r.id, r.ended, r.bytes, d.terms FROM archive_runs r LEFT JOIN archive_details d ON d.run = r.id`

// put adds or replaces a run, and returns by how many bytes the database has grown.
func (s session) put(ctx context.Context, r *row, floor int64) (int64, error) {
	var old stored
	err := s.row(ctx, `SELECT `+storedColumns+` WHERE r.run_key = ?`, r.key).Scan(&old.id, &old.ended, &old.bytes, &old.terms)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if r.ended <= floor {
			return 0, nil
		}
		return r.size(), s.insert(ctx, r)
	case err != nil:
		return 0, err
	case old.ended > r.ended:
		return 0, nil
	}
	r.id = old.id
	return r.size() - old.bytes, s.replace(ctx, r, old)
}

func (s session) insert(ctx context.Context, r *row) error {
	err := s.row(ctx, `INSERT INTO archive_runs (run_key, namespace, name, uid, api_version, kind, object, object_uid, execution, state, `+
		`username, queue, began, ended, bytes, record) VALUES (`+marks(16)+`) RETURNING id`,
		r.key, r.namespace, r.name, r.uid, r.apiVersion, r.kind, r.object, r.objectUID, r.execution, r.state, r.user,
		r.queue, r.began, r.ended, r.size(), r.record).Scan(&r.id)
	if err != nil {
		return err
	}
	if err := s.exec(ctx, `INSERT INTO archive_details (run, terms, details) VALUES (?, ?, ?)`, r.id, join(r.terms), r.details); err != nil {
		return err
	}
	return s.addTerms(ctx, r)
}

func (s session) replace(ctx context.Context, r *row, old stored) error {
	err := s.exec(ctx, `UPDATE archive_runs SET namespace = ?, name = ?, uid = ?, api_version = ?, kind = ?, object = ?, object_uid = ?, `+
		`execution = ?, state = ?, username = ?, queue = ?, began = ?, ended = ?, bytes = ?, record = ? WHERE id = ?`,
		r.namespace, r.name, r.uid, r.apiVersion, r.kind, r.object, r.objectUID,
		r.execution, r.state, r.user, r.queue, r.began, r.ended, r.size(), r.record, r.id)
	if err != nil {
		return err
	}
	terms := join(r.terms)
	err = s.exec(ctx, `INSERT INTO archive_details (run, terms, details) VALUES (?, ?, ?) `+
		`ON CONFLICT (run) DO UPDATE SET terms = excluded.terms, details = excluded.details`, r.id, terms, r.details)
	if err != nil || old.ended == r.ended && string(old.terms) == string(terms) {
		return err
	}
	if err := s.removeTerms(ctx, old.id, old.ended, old.terms); err != nil {
		return err
	}
	return s.addTerms(ctx, r)
}

func (s session) addTerms(ctx context.Context, r *row) error {
	const perTerm = 3
	for chunk := range slices.Chunk(r.terms, maxParameters/perTerm) {
		args := make([]any, 0, perTerm*len(chunk))
		for i := range chunk {
			args = append(args, chunk[i][:], r.ended, r.id)
		}
		values := strings.TrimSuffix(strings.Repeat("(?,?,?),", len(chunk)), ",")
		err := s.exec(ctx, `INSERT INTO archive_terms (term, ended, run) VALUES `+values+` ON CONFLICT DO NOTHING`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s session) removeTerms(ctx context.Context, id, ended int64, joined []byte) error {
	for chunk := range slices.Chunk(split(joined), maxParameters) {
		args := []any{ended, id}
		for i := range chunk {
			args = append(args, chunk[i][:])
		}
		if err := s.exec(ctx, `DELETE FROM archive_terms WHERE ended = ? AND run = ? AND term IN (`+marks(len(chunk))+`)`, args...); err != nil {
			return err
		}
	}
	return nil
}

// Missing implements archive.Store. A run that is stored with an earlier end is missing too, because Put would replace it.
func (s *Store) Missing(ctx context.Context, runs []api.Ended) ([]api.Key, error) {
	keys := make([][]byte, len(runs))
	for i := range runs {
		keys[i] = digestKey(runs[i].Key)
	}
	var out leftOut
	ends := map[string]int64{}
	err := s.read(ctx, func(ctx context.Context, t session) error {
		var err error
		if out, err = t.leftOut(ctx, keys); err != nil {
			return err
		}
		return t.lookup(ctx, `SELECT run_key, ended FROM archive_runs WHERE run_key IN (`, keys, func(scan func(...any) error) error {
			var key []byte
			var ended int64
			if err := scan(&key, &ended); err != nil {
				return err
			}
			ends[string(key)] = ended
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("looking for %d runs: %w", len(runs), err)
	}
	var missing []api.Key
	for i := range runs {
		ended := runs[i].End.UnixMicro()
		at, ok := ends[string(keys[i])]
		if ok && at < ended || !ok && ended > out.floor && !out.deleted[string(keys[i])] {
			missing = append(missing, runs[i].Key)
		}
	}
	return missing, nil
}
