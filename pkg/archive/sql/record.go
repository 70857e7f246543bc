// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	// maxRecord is how large a run may be as JSON, and its details as well. It is more than etcd accepts for an object.
	maxRecord = 16 << 20
	// maxColumn is how many bytes of a value a column has. Columns are for people, and for runs whose record is damaged.
	maxColumn = 512
	// endless is after all times, and beginless before all.
	endless, beginless = math.MaxInt64, -math.MaxInt64
)

// ErrTooLarge is returned for a run that is too large to be stored. Nothing can be done about it but to leave out its details.
var ErrTooLarge = errors.New("the run is too large")

// row is a run as it is stored.
type row struct {
	id                                                        int64
	key                                                       []byte
	namespace, name, uid, apiVersion, kind, object, objectUID string
	execution                                                 int32
	state, user, queue                                        string
	began, ended                                              int64
	record, details                                           []byte
	terms                                                     []term
}

// columns are the columns of archive_runs that answers are made from, in the order of targets.
const columns = `r.id, r.run_key, r.namespace, r.name, r.uid, r.api_version, r.kind, r.object, r.object_uid, r.execution, r.state, ` +
	`r.username, r.queue, r.began, r.ended, r.record`

func (r *row) targets() []any {
	return []any{&r.id, &r.key, &r.namespace, &r.name, &r.uid, &r.apiVersion, &r.kind, &r.object, &r.objectUID, &r.execution, &r.state,
		&r.user, &r.queue, &r.began, &r.ended, &r.record}
}

// size returns about how many bytes of the database the run takes in PostgreSQL: what is stored, and what each row and each entry of an
// index costs in addition.
func (r *row) size() int64 {
	const perRun, perTerm = 1000, 110
	return perRun + int64(len(r.record)+len(r.details)) + int64(len(r.terms))*(perTerm+hashSize)
}

// encoder makes rows of runs. It keeps what compressing needs.
type encoder struct {
	compressor *gzip.Writer
}

func newEncoder() *encoder { return &encoder{gzip.NewWriter(nil)} }

func (e *encoder) encode(run *archive.Run) (row, error) {
	ended := run.EndTime.UnixMicro()
	r := row{
		key:       digestKey(api.KeyOf(run)),
		namespace: column(run.Namespace), name: column(run.Name), uid: column(string(run.UID)),
		apiVersion: column(run.Object.APIVersion), kind: column(run.Object.Kind),
		object: column(run.Object.Name), objectUID: column(string(run.Object.UID)), execution: run.Object.Execution,
		state: column(string(run.State)), user: column(run.User), queue: column(run.Queue),
		began: min(run.BeginTime.UnixMicro(), ended), ended: ended,
	}
	r.terms = termsOf(run, r.began, r.ended)
	var versioned v1alpha1.Run
	if err := v1alpha1.Convert_archive_Run_To_v1alpha1_Run(run, &versioned, nil); err != nil {
		return row{}, err
	}
	details := versioned.Details
	versioned.Details = nil
	var err error
	if r.record, err = e.compress(versioned); err == nil && details != nil {
		r.details, err = e.compress(details)
	}
	if err != nil {
		return row{}, fmt.Errorf("encoding run %.253q in namespace %.253q: %w", run.Name, run.Namespace, err)
	}
	return r, nil
}

func (e *encoder) compress(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(data) > maxRecord {
		return nil, fmt.Errorf("%w: it must have at most %d bytes as JSON without its details, and so must its details; there are %d",
			ErrTooLarge, maxRecord, len(data))
	}
	var compressed bytes.Buffer
	e.compressor.Reset(&compressed)
	if _, err := e.compressor.Write(data); err != nil {
		return nil, err
	}
	if err := e.compressor.Close(); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}

// decoder makes runs of rows. It keeps what decompressing needs.
type decoder struct {
	decompressor gzip.Reader
	plain        bytes.Buffer
}

func (d *decoder) decompress(data []byte, value any) error {
	if err := d.decompressor.Reset(bytes.NewReader(data)); err != nil {
		return err
	}
	// What is longer was not written by this program, and reading all of it would take memory without limit.
	d.plain.Reset()
	if _, err := d.plain.ReadFrom(io.LimitReader(&d.decompressor, maxRecord+1)); err != nil {
		return err
	}
	if d.plain.Len() > maxRecord {
		return ErrTooLarge
	}
	return json.Unmarshal(d.plain.Bytes(), value)
}

// column returns a text that both databases accept, for people.
func column(text string) string {
	if len(text) > maxColumn {
		text = text[:maxColumn]
		for len(text) > 0 && !utf8.ValidString(text[len(text)-1:]) && len(text) > maxColumn-utf8.UTFMax {
			text = text[:len(text)-1]
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// damagedMessage is the message of a run whose record cannot be read.
const damagedMessage = "The record of this run is damaged. Only what the database has in columns is shown."

// damagedDetails begins the message of a run whose details cannot be read.
const damagedDetails = "The details of this run are damaged and not shown."

// run returns the run without its details. A damaged record is no error, because the run would be in the way of all others for ever.
func (d *decoder) run(r *row) archive.Run {
	var versioned v1alpha1.Run
	var run archive.Run
	err := d.decompress(r.record, &versioned)
	if err == nil {
		err = v1alpha1.Convert_v1alpha1_Run_To_archive_Run(&versioned, &run, nil)
	}
	if err != nil || run.Name == "" {
		return r.damaged()
	}
	return run
}

// damaged returns what the columns say about the run.
func (r *row) damaged() archive.Run {
	return archive.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name, UID: types.UID(r.uid)},
		Object: archive.RunObject{
			APIVersion: r.apiVersion, Kind: r.kind, Name: r.object, UID: types.UID(r.objectUID), Execution: r.execution,
		},
		State: archive.RunState(r.state), Message: damagedMessage, User: r.user, Queue: r.queue,
		BeginTime: metav1.NewMicroTime(time.UnixMicro(r.began)), EndTime: metav1.NewMicroTime(time.UnixMicro(r.ended)),
	}
}

// detailed returns the run with its details.
func (d *decoder) detailed(r *row) archive.Run {
	run := d.run(r)
	if len(r.details) == 0 {
		return run
	}
	var versioned v1alpha1.RunDetails
	var details archive.RunDetails
	err := d.decompress(r.details, &versioned)
	if err == nil {
		err = v1alpha1.Convert_v1alpha1_RunDetails_To_archive_RunDetails(&versioned, &details, nil)
	}
	if err != nil {
		run.Message = strings.TrimSpace(damagedDetails + " " + run.Message)
		return run
	}
	run.Details = &details
	return run
}
