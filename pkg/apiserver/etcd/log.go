// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// chatter is the verbosity at which etcd's own information appears: it tells of elections and snapshots, which an
// operator of the API server rarely asks for.
const chatter = 3

// newLogger makes the member write where and how the rest of the process does.
func newLogger(logger logr.Logger) *zap.Logger {
	return zap.New(&logCore{logger: logger})
}

// logCore hands the entries of etcd's logger on.
type logCore struct {
	logger logr.Logger
}

var _ zapcore.Core = &logCore{}

func verbosity(level zapcore.Level) int {
	switch {
	case level >= zapcore.WarnLevel:
		return 0
	case level == zapcore.InfoLevel:
		return chatter
	default:
		return chatter + 3
	}
}

// Enabled tells whether entries of the level are written.
func (c *logCore) Enabled(level zapcore.Level) bool {
	return c.logger.V(verbosity(level)).Enabled()
}

// With returns a core that adds the fields to every entry.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{logger: c.logger.WithValues(keysAndValues(fields)...)}
}

// Check adds the core to those that write the entry.
func (c *logCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write writes one entry.
func (c *logCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := keysAndValues(fields)
	if entry.Level >= zapcore.ErrorLevel {
		c.logger.Error(nil, entry.Message, values...)
		return nil
	}
	c.logger.V(verbosity(entry.Level)).Info(entry.Message, values...)
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
