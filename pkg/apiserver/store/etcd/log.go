// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
)

// chatter is the verbosity at which etcd's own information appears, such as elections and snapshots, which an
// operator of the API server rarely asks for.
const chatter = 3

// phase is what the member is doing. It complains of its own settings when it starts and of its own listeners when it
// closes, at levels that would alarm an operator.
type phase int32

const (
	starting phase = iota
	serving
	closing
)

// logCore makes the member write where and how the rest of the process does.
type logCore struct {
	logger logr.Logger
	phase  *atomic.Int32
}

var _ zapcore.Core = &logCore{}

func newLogCore(logger logr.Logger) *logCore {
	return &logCore{logger: logger, phase: &atomic.Int32{}}
}

func (c *logCore) setPhase(p phase) { c.phase.Store(int32(p)) }

// verbosity is the level at which an entry appears.
func (c *logCore) verbosity(level zapcore.Level) int {
	current := phase(c.phase.Load())
	switch {
	case level >= zapcore.FatalLevel:
		return 0
	case level >= zapcore.ErrorLevel && current != closing:
		return 0
	case level >= zapcore.WarnLevel && current == serving:
		return 0
	case level >= zapcore.InfoLevel:
		return chatter
	default:
		return chatter + 3
	}
}

// Enabled reports whether entries of the level are written.
func (c *logCore) Enabled(level zapcore.Level) bool {
	return c.logger.V(c.verbosity(level)).Enabled()
}

// With returns a core that adds the fields to every entry.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{logger: c.logger.WithValues(keysAndValues(fields)...), phase: c.phase}
}

// Check adds the core to those that write the entry.
func (c *logCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// lastWords precede the end of the process.
const lastWords = "The embedded etcd cannot go on and ends the process: check the disk and the free space of --data-dir, then start the " +
	"server again on the same directory; if it does not start there, restore a backup"

// Write writes one entry.
func (c *logCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := keysAndValues(fields)
	if entry.Level >= zapcore.PanicLevel {
		// The caller ends the process after this line.
		c.logger.Error(nil, lastWords, append([]any{"reason", entry.Message}, values...)...)
		return nil
	}
	level := c.verbosity(entry.Level)
	if entry.Level >= zapcore.ErrorLevel && level == 0 {
		c.logger.Error(nil, entry.Message, values...)
		return nil
	}
	c.logger.V(level).Info(entry.Message, values...)
	return nil
}

// Sync does nothing: the process flushes its log when it ends.
func (c *logCore) Sync() error { return nil }

// keysAndValues keeps the order in which etcd gave the fields.
func keysAndValues(fields []zapcore.Field) []any {
	values := make([]any, 0, 2*len(fields))
	for _, field := range fields {
		encoder := zapcore.NewMapObjectEncoder()
		field.AddTo(encoder)
		for key, value := range encoder.Fields {
			values = append(values, key, value)
		}
	}
	return values
}
