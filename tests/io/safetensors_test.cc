#include "framework/io/safetensors.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/io/test_file.h"

namespace zg {
namespace {

std::string LittleEndian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string FileBytes(const std::string& header, size_t data_bytes) {
  std::string bytes = LittleEndian(header.size()) + header;
  for (size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i + 1);
  return bytes;
}

StatusOr<SafetensorsFile> OpenBytes(const std::string& bytes) {
  return SafetensorsFile::Open(WriteTestFile("test.safetensors", bytes));
}

struct RejectedFile {
  const char* name;
  std::string bytes;
  std::string message;  // after the file's name
};

void PrintTo(const RejectedFile& file, std::ostream* out) { *out << file.name; }

class RejectedFileTest : public ::testing::TestWithParam<RejectedFile> {};

TEST_P(RejectedFileTest, NamesTheFileAndTheReason) {
  const StatusOr<SafetensorsFile> file = OpenBytes(GetParam().bytes);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().message(), TestPath("test.safetensors") + ": " + GetParam().message);
}

std::string NameOf(const ::testing::TestParamInfo<RejectedFile>& info) { return info.param.name; }

// A header with one record under the name "a" and `data_bytes` bytes of data.
std::string OneTensor(const std::string& record, size_t data_bytes) {
  return FileBytes("{\"a\":" + record + "}", data_bytes);
}

// {"dtype":"U8","shape":[n],"data_offsets":[begin,end]}
std::string Bytes(int begin, int end) {
  return fmt::format(R"({{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", end - begin, begin,
                     end);
}

INSTANTIATE_TEST_SUITE_P(
    Length, RejectedFileTest,
    ::testing::Values(
        RejectedFile{"Empty", "", "got 0 bytes, expected at least 8; not a safetensors file"},
        RejectedFile{"SevenBytes", std::string(7, '\1'),
                     "got 7 bytes, expected at least 8; not a safetensors file"},
        RejectedFile{"HeaderTooLong", LittleEndian(100'000'001) + "{}",
                     "got a header of 100000001 bytes, expected 1 to 100000000; not a safetensors "
                     "file"},
        RejectedFile{"HeaderLengthOverflows", LittleEndian(~uint64_t{0}) + "{}",
                     "got a header of 18446744073709551615 bytes, expected 1 to 100000000; not a "
                     "safetensors file"},
        RejectedFile{"HeaderPastTheEnd", LittleEndian(3) + "{}",
                     "got 10 bytes, expected a header of 3 bytes after the first 8; the file is "
                     "truncated or not a safetensors file"},
        RejectedFile{"NoHeader", LittleEndian(0),
                     "got a header of 0 bytes, expected 1 to 100000000; not a safetensors file"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Header, RejectedFileTest,
    ::testing::Values(
        RejectedFile{"NulPadding", FileBytes(std::string("{}\0\0", 4), 0),
                     "the header has a NUL byte at 2, expected JSON padded with spaces"},
        RejectedFile{"ByteOrderMark", FileBytes("\xef\xbb\xbf{}", 0),
                     "the header begins with a byte order mark, expected '{'"},
        RejectedFile{"TwoObjects", FileBytes("{}{}", 0),
                     "the header is not valid JSON (byte 3): parse error at line 1, column 3: "
                     "syntax error while parsing value - unexpected '{'; expected end of input"},
        RejectedFile{"Array", FileBytes("[]", 0), "the header: got an array, expected an object"},
        RejectedFile{"Scalar", FileBytes("3", 0), "the header: got 3, expected an object"},
        RejectedFile{"BadJson", FileBytes("{\"a\":", 0),
                     "the header is not valid JSON (byte 6): parse error at line 1, column 6: "
                     "syntax error while parsing value - unexpected end of input; expected '[', "
                     "'{', or a literal"},
        RejectedFile{"OnlySpaces", FileBytes("    ", 0),
                     "the header is not valid JSON (byte 5): parse error at line 1, column 5: "
                     "syntax error while parsing value - unexpected end of input; expected '[', "
                     "'{', or a literal"},
        RejectedFile{"DeepNestingOfObjects",
                     FileBytes(
                         [] {
                           std::string json;
                           for (int i = 0; i < 100000; ++i) json += "{\"a\":";
                           return json;
                         }(),
                         0),
                     "tensor \"a\": got the field \"a\", expected only dtype, shape and "
                     "data_offsets"},
        RejectedFile{"DeepNestingOfArrays", OneTensor("{\"shape\":" + std::string(100000, '['), 0),
                     "tensor \"a\": shape: got an array, expected integers from 0 to 2^63 - 1"},
        RejectedFile{"DataWithoutATensor", FileBytes("{}", 4),
                     "got 4 bytes of data without a tensor"}),
    NameOf);

TEST(SafetensorsFile, RejectsAHeaderThatIsNotUtf8) {
  for (const char* name : {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf8\x88\x80\x80\x80"}) {
    const Status status =
        OpenBytes(FileBytes("{\"" + std::string(name) + "\":" + Bytes(0, 1) + "}", 1)).status();
    EXPECT_NE(status.message().find("the header is not valid JSON"), std::string::npos);
    EXPECT_NE(status.message().find("UTF-8"), std::string::npos) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Coverage, RejectedFileTest,
    ::testing::Values(
        RejectedFile{
            "TruncatedData", OneTensor(Bytes(0, 4), 3),
            "tensor \"a\": its data ends at byte 4, but the file has only 3 bytes of data; "
            "it is truncated"},
        RejectedFile{
            "TrailingBytes", OneTensor(Bytes(0, 4), 5),
            "tensor \"a\": the last data ends at byte 4, but the file has 5 bytes of data"},
        RejectedFile{
            "Hole", FileBytes("{\"a\":" + Bytes(0, 2) + ",\"b\":" + Bytes(3, 4) + "}", 4),
            "tensor \"b\": its data begins at byte 3, expected 2 (no tensor owns the bytes "
            "before it)"},
        RejectedFile{"Overlap",
                     FileBytes("{\"b\":" + Bytes(1, 4) + ",\"a\":" + Bytes(0, 2) + "}", 4),
                     "tensor \"b\": its data begins at byte 1, expected 2 (it overlaps the tensor "
                     "before it)"},
        RejectedFile{"Inside",
                     FileBytes("{\"a\":" + Bytes(0, 4) + ",\"b\":" + Bytes(1, 2) + "}", 4),
                     "tensor \"b\": its data begins at byte 1, expected 4 (it overlaps the tensor "
                     "before it)"},
        RejectedFile{"Reversed", OneTensor(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})", 4),
                     "tensor \"a\": got data_offsets [4, 0], expected begin <= end"},
        RejectedFile{"TwoNamesOnOneRange",
                     FileBytes("{\"a\":" + Bytes(0, 4) + ",\"b\":" + Bytes(0, 4) + "}", 4),
                     "tensor \"b\": its data begins at byte 0, expected 4 (it overlaps the tensor "
                     "before it)"},
        RejectedFile{
            "FirstNotAtZero", OneTensor(Bytes(1, 4), 4),
            "tensor \"a\": its data begins at byte 1, expected 0 (no tensor owns the bytes "
            "before it)"},
        RejectedFile{
            "EmptyTensorPastTheEnd", OneTensor(Bytes(9, 9), 0),
            "tensor \"a\": its data begins at byte 9, expected 0 (no tensor owns the bytes "
            "before it)"},
        RejectedFile{"HugeRange",
                     OneTensor(R"({"dtype":"U8","shape":[9223372036854775807],)"
                               R"("data_offsets":[0,9223372036854775807]})",
                               4),
                     "tensor \"a\": the size of U8[9223372036854775807] overflows 64 bits"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Record, RejectedFileTest,
    ::testing::Values(
        RejectedFile{"SizeIsNotShapeTimesDtype",
                     OneTensor(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,20]})", 20),
                     "tensor \"a\": got 20 bytes (data_offsets [0, 20]), expected 24 for F32 of "
                     "shape [2, 3]"},
        RejectedFile{"ProductOverflows",
                     OneTensor(R"({"dtype":"U8","shape":[4294967296,4294967296],)"
                               R"("data_offsets":[0,0]})",
                               0),
                     "tensor \"a\": the size of U8[4294967296, 4294967296] overflows 64 bits"},
        RejectedFile{"ProductOverflowsBeforeAZero",
                     OneTensor(R"({"dtype":"U8","shape":[4294967296,4294967296,0],)"
                               R"("data_offsets":[0,0]})",
                               0),
                     "tensor \"a\": the size of U8[4294967296, 4294967296, 0] overflows 64 bits"},
        RejectedFile{"SizeOverflowsByTheDtype",
                     OneTensor(R"({"dtype":"F64","shape":[4611686018427387904],)"
                               R"("data_offsets":[0,0]})",
                               0),
                     "tensor \"a\": the size of F64[4611686018427387904] overflows 64 bits"},
        RejectedFile{"HalfAByte",
                     OneTensor(R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})", 1),
                     "tensor \"a\": F4[3] has 12 bits, expected whole bytes"},
        RejectedFile{"UnknownDtype",
                     OneTensor(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})", 4),
                     "tensor \"a\": got dtype \"F31\", expected one such as \"F32\""},
        RejectedFile{"LowerCaseDtype",
                     OneTensor(R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})", 4),
                     "tensor \"a\": got dtype \"f32\", expected one such as \"F32\""},
        RejectedFile{"DtypeIsANumber",
                     OneTensor(R"({"dtype":32,"shape":[1],"data_offsets":[0,4]})", 4),
                     "tensor \"a\": dtype: got 32, expected a string"},
        RejectedFile{"NoDtype", OneTensor(R"({"shape":[1],"data_offsets":[0,4]})", 4),
                     "tensor \"a\": the field \"dtype\" is missing"},
        RejectedFile{"NoShape", OneTensor(R"({"dtype":"F32","data_offsets":[0,4]})", 4),
                     "tensor \"a\": the field \"shape\" is missing"},
        RejectedFile{"NoOffsets", OneTensor(R"({"dtype":"F32","shape":[1]})", 4),
                     "tensor \"a\": the field \"data_offsets\" is missing"},
        RejectedFile{"ExtraField",
                     OneTensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})", 4),
                     "tensor \"a\": got the field \"x\", expected only dtype, shape and "
                     "data_offsets"},
        RejectedFile{
            "FieldTwice",
            OneTensor(R"({"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]})", 4),
            "tensor \"a\": the field \"shape\" is there twice"},
        RejectedFile{"RecordIsAnArray", OneTensor(R"(["F32",[1],[0,4]])", 4),
                     "tensor \"a\": got an array, expected an object"},
        RejectedFile{"RecordIsNull", OneTensor("null", 0),
                     "tensor \"a\": got null, expected an object"},
        RejectedFile{"RecordIsTrue", OneTensor("true", 0),
                     "tensor \"a\": got true, expected an object"},
        RejectedFile{"ShapeIsANumber",
                     OneTensor(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", 4),
                     "tensor \"a\": shape: got 1, expected an array of integers"},
        RejectedFile{"ShapeIsAnObject", OneTensor(R"({"shape":{}})", 0),
                     "tensor \"a\": shape: got an object, expected an array of integers"},
        RejectedFile{"OneOffset", OneTensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4]})", 4),
                     "tensor \"a\": got 1 data_offsets, expected 2: begin and end"},
        RejectedFile{"ThreeOffsets",
                     OneTensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})", 4),
                     "tensor \"a\": data_offsets: got 4, expected two integers from 0 to 2^64 - 1"},
        RejectedFile{
            "NegativeOffset", OneTensor(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", 4),
            "tensor \"a\": data_offsets: got the negative number -4, expected two integers "
            "from 0 to 2^64 - 1"},
        RejectedFile{"NegativeDim",
                     OneTensor(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4),
                     "tensor \"a\": shape: got the negative number -1, expected integers from 0 to "
                     "2^63 - 1"},
        RejectedFile{
            "FloatDim", OneTensor(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", 4),
            "tensor \"a\": shape: got the number 1.0, expected integers from 0 to 2^63 - 1"},
        RejectedFile{"StringDim",
                     OneTensor(R"({"dtype":"F32","shape":["1"],"data_offsets":[0,4]})", 4),
                     "tensor \"a\": shape: got the string \"1\", expected integers from 0 to "
                     "2^63 - 1"},
        RejectedFile{
            "DimBeyondSigned",
            OneTensor(R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]})", 4),
            "tensor \"a\": shape: got 9223372036854775808, expected integers from 0 to "
            "2^63 - 1"},
        RejectedFile{"DimBeyondUnsigned",
                     OneTensor(R"({"dtype":"U8","shape":[18446744073709551616],)"
                               R"("data_offsets":[0,4]})",
                               4),
                     "tensor \"a\": shape: got the number 18446744073709551616, expected integers "
                     "from 0 to 2^63 - 1"},
        RejectedFile{"DuplicateName",
                     FileBytes("{\"a\":" + Bytes(0, 2) + ",\"a\":" + Bytes(2, 4) + "}", 4),
                     "tensor \"a\": the name is there twice"},
        RejectedFile{"DuplicateNameByEscape",
                     FileBytes("{\"a\":" + Bytes(0, 2) + ",\"\\u0061\":" + Bytes(2, 4) + "}", 4),
                     "tensor \"a\": the name is there twice"},
        RejectedFile{"NameWithControlCharacters", FileBytes(R"({"\u001b[2J\"":1})", 0),
                     "tensor \"\\x1b[2J\\\"\": got 1, expected an object"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Metadata, RejectedFileTest,
    ::testing::Values(
        RejectedFile{"ValueIsANumber", FileBytes(R"({"__metadata__":{"step":3}})", 0),
                     "__metadata__: the key \"step\": got 3, expected a string"},
        RejectedFile{"ValueIsAnObject", FileBytes(R"({"__metadata__":{"step":{}}})", 0),
                     "__metadata__: the key \"step\": got an object, expected a string"},
        RejectedFile{"NotAnObject", FileBytes(R"({"__metadata__":"x"})", 0),
                     "__metadata__: got the string \"x\", expected an object"},
        RejectedFile{"KeyTwice", FileBytes(R"({"__metadata__":{"a":"1","a":"1"}})", 0),
                     "__metadata__: the key \"a\" is there twice"},
        RejectedFile{"Twice", FileBytes(R"({"__metadata__":{},"__metadata__":{}})", 0),
                     "__metadata__: the name is there twice"}),
    NameOf);

TEST(SafetensorsFile, ReadsEntriesInTheOrderOfTheirBytes) {
  const std::string header =
      "  {\"late\":{\"data_offsets\":[4,12],\"shape\":[2,1],\"dtype\":\"F32\"},"
      "\"__metadata__\":{\"format\":\"pt\"},"
      "\"early\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}  ";
  const StatusOr<SafetensorsFile> file = OpenBytes(FileBytes(header, 12));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  ASSERT_EQ(file->entries().size(), 2u);
  const SafetensorsEntry& early = file->entries()[0];
  EXPECT_EQ(early.name, "early");
  EXPECT_EQ(early.dtype, SafetensorsDType::kBF16);
  EXPECT_EQ(early.shape, std::vector<int64_t>{2});
  EXPECT_EQ(early.size_bytes(), 4u);
  EXPECT_EQ(file->Find("late"), &file->entries()[1]);
  EXPECT_EQ(file->Find("late")->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(file->Data(*file->Find("late"))[0], 5);
  EXPECT_EQ(file->Find("none"), nullptr);
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

TEST(SafetensorsFile, AcceptsEmptyTensorsScalarsAndOddHeaderLengths) {
  const std::string header = R"({"b":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"F32","shape":[3,0],"data_offsets":[8,8]},)"
                             R"("c":{"dtype":"F4","shape":[0,7],"data_offsets":[0,0]},)"
                             R"("":{"dtype":"BOOL","shape":[0],"data_offsets":[8,8]}})";
  for (int spaces = 0; spaces < 8; ++spaces) {
    const StatusOr<SafetensorsFile> file =
        OpenBytes(FileBytes(header + std::string(spaces, ' '), 8));
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(file->Find("a")->size_bytes(), 0u);
    EXPECT_TRUE(file->Find("b")->shape.empty());
    EXPECT_EQ(file->Data(*file->Find("b"))[7], 8);
  }
  EXPECT_TRUE(OpenBytes(FileBytes("{}", 0)).ok());
}

TEST(SafetensorsFile, KnowsEveryDtype) {
  for (const char* name :
       {"F32",         "F16",         "BF16",    "F64",     "F8_E5M2", "F8_E4M3", "F8_E8M0", "C64",
        "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F6_E2M3", "F6_E3M2", "F4",      "I64",     "I32",     "I16",
        "I8",          "U64",         "U32",     "U16",     "U8",      "BOOL"}) {
    const std::optional<SafetensorsDType> dtype = ParseSafetensorsDType(name);
    ASSERT_TRUE(dtype.has_value()) << name;
    EXPECT_EQ(SafetensorsDTypeName(*dtype), name);
    const int bits = BitsOf(*dtype);
    const std::string record =
        fmt::format(R"({{"dtype":"{}","shape":[4],"data_offsets":[0,{}]}})", name, bits / 2);
    EXPECT_TRUE(OpenBytes(OneTensor(record, bits / 2)).ok()) << name;
  }
}

TEST(SafetensorsFile, AMissingFileIsNamed) {
  EXPECT_EQ(SafetensorsFile::Open(TestPath("none")).status().message(),
            TestPath("none") + ": no such file");
}

// A small file with every kind of token in its header.
std::string SmallFile() {
  return FileBytes(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],)"
                   R"("data_offsets":[0,8]},"e":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
                   8);
}

TEST(SafetensorsFile, TruncationAnywhereIsAnError) {
  const std::string whole = SmallFile();
  ASSERT_TRUE(OpenBytes(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(OpenBytes(whole.substr(0, size)).ok()) << size;
  }
}

// Any bytes give either an error or entries inside the file.
void ExpectErrorOrValid(const std::string& bytes) {
  const StatusOr<SafetensorsFile> file = OpenBytes(bytes);
  if (!file.ok()) {
    EXPECT_EQ(file.status().message().rfind(TestPath("test.safetensors"), 0), 0u);
    return;
  }
  size_t sum = 0, num_bytes = 0;
  for (const SafetensorsEntry& entry : file->entries()) {
    for (size_t i = 0; i < entry.size_bytes(); ++i) sum += file->Data(entry)[i];
    num_bytes += entry.size_bytes();
  }
  EXPECT_LE(num_bytes, bytes.size());
  EXPECT_LE(sum, 255 * num_bytes);
}

TEST(SafetensorsFile, AChangedByteAnywhereDoesNotCrash) {
  const std::string whole = SmallFile();
  for (size_t position = 0; position < whole.size(); ++position) {
    for (const char flip :
         {'\x01', '\x02', '\x04', '\x08', '\x10', '\x20', '\x40', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[position] = static_cast<char>(changed[position] ^ flip);
      ExpectErrorOrValid(changed);
    }
  }
}

TEST(SafetensorsFile, ADeletedOrDoubledByteAnywhereDoesNotCrash) {
  const std::string header = SmallFile().substr(8, SmallFile().size() - 16);
  for (size_t position = 0; position < header.size(); ++position) {
    std::string deleted = header, doubled = header;
    deleted.erase(position, 1);
    doubled.insert(position, 1, header[position]);
    ExpectErrorOrValid(FileBytes(deleted, 8));
    ExpectErrorOrValid(FileBytes(doubled, 8));
  }
}

}  // namespace
}  // namespace zg
