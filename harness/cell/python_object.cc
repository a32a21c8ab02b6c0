// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/python_object.h"

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

// str(object), or what stands for an object whose __str__ raises. Throws nothing: that exception's
// __str__ may raise, too.
std::string TextOfAny(PyObject* object) {
  PyObject* text = object ? PyObject_Str(object) : nullptr;
  PyObject* bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : nullptr;
  std::string result = "(it cannot be printed)";
  if (bytes) result = PyBytes_AsString(bytes);
  PyErr_Clear();
  Py_XDECREF(bytes);
  Py_XDECREF(text);
  return result;
}

std::string Describe(PyObject* type, PyObject* value) {
  PyObject* name = type ? PyObject_GetAttrString(type, "__name__") : nullptr;
  std::string text = absl::StrCat(TextOfAny(name), ": ", TextOfAny(value));
  Py_XDECREF(name);
  return text;
}

}  // namespace

PythonObject PythonObject::Own(PyObject* reference) {
  if (!reference) throw PythonError::Take();
  return PythonObject(reference);
}

PythonObject PythonObject::Import(const char* module) { return Own(PyImport_ImportModule(module)); }

PythonObject PythonObject::FromText(const std::string& text) {
  // As Python reads file names: bytes that are not UTF-8 survive.
  return Own(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

PythonObject PythonObject::FromInt(long value) { return Own(PyLong_FromLong(value)); }

PythonObject PythonObject::FromBool(bool value) { return Own(PyBool_FromLong(value)); }

PythonObject PythonObject::List(const std::vector<PythonObject>& elements) {
  PythonObject list = Own(PyList_New(0));
  for (const PythonObject& element : elements) {
    if (PyList_Append(list.object_, element.object_) != 0) throw PythonError::Take();
  }
  return list;
}

PythonObject PythonObject::None() {
  Py_INCREF(Py_None);
  return PythonObject(Py_None);
}

PythonObject PythonObject::Attr(const char* name) const {
  return Own(PyObject_GetAttrString(object_, name));
}

void PythonObject::SetAttr(const char* name, const PythonObject& value) const {
  if (PyObject_SetAttrString(object_, name, value.object_) != 0) throw PythonError::Take();
}

void PythonObject::SetItem(const PythonObject& key, const PythonObject& value) const {
  if (PyObject_SetItem(object_, key.object_, value.object_) != 0) throw PythonError::Take();
}

PythonObject PythonObject::Call(
    const std::vector<PythonObject>& arguments,
    const std::vector<std::pair<const char*, PythonObject>>& keywords) const {
  const PythonObject all = Own(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  for (size_t i = 0; i < arguments.size(); ++i) {
    Py_INCREF(arguments[i].object_);  // the tuple takes it over
    PyTuple_SetItem(all.object_, static_cast<Py_ssize_t>(i), arguments[i].object_);
  }
  const PythonObject named = Own(PyDict_New());
  for (const auto& [name, value] : keywords) named.SetItem(FromText(name), value);
  return Own(PyObject_Call(object_, all.object_, named.object_));
}

std::vector<PythonObject> PythonObject::Elements() const {
  const PythonObject iterator = Own(PyObject_GetIter(object_));
  std::vector<PythonObject> elements;
  while (PyObject* next = PyIter_Next(iterator.object_)) elements.push_back(Own(next));
  if (PyErr_Occurred()) throw PythonError::Take();
  return elements;
}

std::string PythonObject::Text() const {
  const PythonObject text = Own(PyObject_Str(object_));
  const PythonObject bytes =
      Own(PyUnicode_AsEncodedString(text.object_, "utf-8", "backslashreplace"));
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.object_, &data, &size) != 0) throw PythonError::Take();
  return std::string(data, static_cast<size_t>(size));
}

PythonError PythonError::Take() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PythonError error;
  // A call that fails without an exception is a fault of the called function.
  error.type_ = type ? PythonObject::Own(type) : PythonObject::None();
  error.value_ = value ? PythonObject::Own(value) : PythonObject::None();
  error.trace_ = trace ? PythonObject::Own(trace) : PythonObject::None();
  error.what_ = Describe(type, value);
  return error;
}

bool PythonError::IsA(PyObject* type) const {
  return PyErr_GivenExceptionMatches(type_.get(), type) != 0;
}

}  // namespace bkm
