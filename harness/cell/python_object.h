// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PYTHON_OBJECT_H_
#define HARNESS_CELL_PYTHON_OBJECT_H_

// The part of the C API that every CPython from this version on has under the same binary
// interface. One object file serves all of them; pybind11 would need one for each version.
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace bkm {

// A reference to a Python object, or nothing. All functions need the GIL and throw PythonError.
class PythonObject {
 public:
  PythonObject() = default;
  // Takes over a new reference. Null means that Python raised: throws that exception.
  static PythonObject Own(PyObject* reference);
  static PythonObject Import(const char* module);
  static PythonObject FromText(const std::string& text);
  static PythonObject FromInt(long value);
  static PythonObject FromBool(bool value);
  static PythonObject List(const std::vector<PythonObject>& elements);
  static PythonObject None();

  PythonObject(const PythonObject& other) : object_(other.object_) { Py_XINCREF(object_); }
  PythonObject(PythonObject&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PythonObject& operator=(PythonObject other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PythonObject() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  bool IsNone() const { return object_ == Py_None; }

  PythonObject Attr(const char* name) const;
  void SetAttr(const char* name, const PythonObject& value) const;
  void SetItem(const PythonObject& key, const PythonObject& value) const;
  PythonObject Call(const std::vector<PythonObject>& arguments = {},
                    const std::vector<std::pair<const char*, PythonObject>>& keywords = {}) const;
  // The elements of an iterable.
  std::vector<PythonObject> Elements() const;
  // str(object), as valid UTF-8
  std::string Text() const;

 private:
  explicit PythonObject(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

// A Python exception on its way through C++.
class PythonError : public std::exception {
 public:
  // Takes the exception that is set.
  static PythonError Take();

  const char* what() const noexcept override { return what_.c_str(); }
  const PythonObject& type() const { return type_; }
  const PythonObject& value() const { return value_; }
  const PythonObject& trace() const { return trace_; }  // None, if there is none
  bool IsA(PyObject* type) const;

 private:
  PythonError() = default;
  PythonObject type_;
  PythonObject value_;
  PythonObject trace_;
  std::string what_;  // "ImportError: No module named 'x'"
};

}  // namespace bkm

#endif  // HARNESS_CELL_PYTHON_OBJECT_H_
